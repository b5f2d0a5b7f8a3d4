package inmem

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"time"

	"sqlwriter/internal/adopt"
	"sqlwriter/internal/reconcile"
	"sqlwriter/internal/run"
)

// Findings are reconcile.Findings on the tables of a RunStore. They are safe for concurrent use.
type Findings struct {
	s      *RunStore
	ledger adopt.Ledger
}

var _ reconcile.Findings = (*Findings)(nil)

// findingID identifies a row.
type findingID struct {
	sysName string
	key     reconcile.Key
}

// storedComparison is a row of an environment.
type storedComparison struct {
	reconcile.Comparison

	sysName string
	named   bool
}

// Findings keeps those of the store's environment in the same database. The ledger says when it was adopted.
func (s *RunStore) Findings(ledger adopt.Ledger) *Findings { return &Findings{s, ledger} }

// Begin implements reconcile.Findings.
func (f *Findings) Begin(ctx context.Context, c reconcile.Comparison) (bool, error) {
	a, err := c.Audit().Normalize()
	if err != nil {
		return false, err
	}
	if err := ended(ctx, "inmem: begin comparison"); err != nil {
		return false, err
	}
	f.s.mu.Lock()
	defer f.s.mu.Unlock()
	if f.s.comparison(c.ID) != nil {
		return false, nil
	}
	c.BegunAt, c.MovedAt, c.Step, c.Counts, c.By, c.Why = f.s.at(), f.s.at(), 0, map[reconcile.Class]int{}, a.By, a.Why
	f.s.comparisons = append(f.s.comparisons, &storedComparison{c, f.s.sysName, len(c.IDs) > 0})
	f.s.note(a)
	return true, nil
}

// Comparison gives a comparison of the environment as it is now; false if there is none.
func (s *RunStore) Comparison(id string) (reconcile.Comparison, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if c := s.comparison(id); c != nil {
		return copied(c), true
	}
	return reconcile.Comparison{}, false
}

// comparison finds one of the environment; nil if there is none.
func (s *RunStore) comparison(id string) *storedComparison {
	for _, c := range s.comparisons {
		if s.ours(c.sysName) && c.ID == id {
			return c
		}
	}
	return nil
}

// lastComparison is the last of the environment that ended well and named no documents; nil if there is none.
func (s *RunStore) lastComparison() (last *storedComparison) {
	for _, c := range s.comparisons {
		if s.ours(c.sysName) && c.Ended && c.Error == "" && !c.named &&
			(last == nil || !c.BegunAt.Before(last.BegunAt)) {
			last = c
		}
	}
	return last
}

// Next implements reconcile.Findings.
func (f *Findings) Next(ctx context.Context) (reconcile.Comparison, bool, error) {
	if err := ended(ctx, "inmem: next comparison"); err != nil {
		return reconcile.Comparison{}, false, err
	}
	f.s.mu.Lock()
	defer f.s.mu.Unlock()
	for _, c := range f.s.comparisons {
		if f.s.ours(c.sysName) && !c.Ended {
			one := copied(c)
			one.ReadAt = f.s.at()
			return one, true, nil
		}
	}
	return reconcile.Comparison{}, false, nil
}

// Last implements reconcile.Findings.
func (f *Findings) Last(ctx context.Context) (reconcile.Comparison, bool, error) {
	if err := ended(ctx, "inmem: last comparison"); err != nil {
		return reconcile.Comparison{}, false, err
	}
	f.s.mu.Lock()
	defer f.s.mu.Unlock()
	last := f.s.lastComparison()
	if last == nil {
		return reconcile.Comparison{}, false, nil
	}
	one := copied(last)
	one.ReadAt = f.s.at()
	return one, true, nil
}

func copied(c *storedComparison) reconcile.Comparison {
	one := c.Comparison
	one.IDs, one.Counts = slices.Clone(c.IDs), maps.Clone(c.Counts)
	return one
}

// Save implements reconcile.Findings.
func (f *Findings) Save(ctx context.Context, c reconcile.Comparison, put []reconcile.Seen, drop []reconcile.Key) error {
	const op = "inmem: save comparison"
	if err := ended(ctx, op); err != nil {
		return err
	}
	f.s.mu.Lock()
	defer f.s.mu.Unlock()
	row := f.s.comparison(c.ID)
	if row == nil || row.Ended || row.Step != c.Step {
		return changed(op, "another tick did this step")
	}
	now := f.s.at()
	row.Step, row.Position, row.Error, row.Ended, row.MovedAt = c.Step+1, c.Position, c.Error, c.Ended, now
	if c.Ended {
		row.EndedAt, row.IDs, row.Whole = now, nil, false
	}
	room := map[reconcile.Class]int{}
	for id := range f.s.findings {
		if id.sysName == f.s.sysName {
			room[id.key.Class]++
		}
	}
	put = slices.Clone(put)
	slices.SortStableFunc(put, func(a, b reconcile.Seen) int { return a.Compare(b.Key) })
	for _, one := range put {
		id := findingID{f.s.sysName, one.Key}
		known := f.s.findings[id]
		if known == nil {
			if room[one.Class] == reconcile.MaxFindings {
				c.Unkept(one.Class, 1)
				continue
			}
			room[one.Class]++
			known = &reconcile.Finding{FirstSeen: now}
			f.s.findings[id] = known
		}
		one.Sure = one.Sure || known.Sure
		one.Detail = run.Truncate(one.Detail, reconcile.MaxDetail)
		known.Seen, known.LastSeen = one, now
	}
	for _, k := range drop {
		delete(f.s.findings, findingID{f.s.sysName, k})
	}
	row.Counts = maps.Clone(c.Counts)
	return nil
}

// List implements reconcile.Findings.
func (f *Findings) List(
	ctx context.Context, q reconcile.Query, after *reconcile.Key, limit int,
) ([]reconcile.Finding, error) {
	if err := ended(ctx, "inmem: list findings"); err != nil {
		return nil, err
	}
	f.s.mu.Lock()
	defer f.s.mu.Unlock()
	classes := q.Classes
	if len(classes) == 0 {
		classes = reconcile.FindingClasses()
	}
	list := []reconcile.Finding{}
	for id, row := range f.s.findings {
		if id.sysName == f.s.sysName && slices.Contains(classes, id.key.Class) && (q.Suspects || row.Sure) &&
			(q.Line == 0 || id.key.Line == q.Line) &&
			(!q.Mends || row.Mends) && (after == nil || id.key.Compare(*after) > 0) {
			list = append(list, *row)
		}
	}
	slices.SortFunc(list, func(a, b reconcile.Finding) int { return a.Compare(b.Key) })
	return list[:min(len(list), max(0, limit))], nil
}

// Counts implements reconcile.Findings.
func (f *Findings) Counts(ctx context.Context) ([]reconcile.Count, error) {
	if err := ended(ctx, "inmem: count findings"); err != nil {
		return nil, err
	}
	f.s.mu.Lock()
	defer f.s.mu.Unlock()
	byClass := map[reconcile.Class]reconcile.Count{}
	for id, row := range f.s.findings {
		if id.sysName != f.s.sysName || !row.Sure {
			continue
		}
		c := byClass[id.key.Class]
		if c.Findings == 0 || row.FirstSeen.Before(c.First) {
			c.First = row.FirstSeen
		}
		c.Class, c.Findings = id.key.Class, c.Findings+1
		byClass[id.key.Class] = c
	}
	list := slices.AppendSeq([]reconcile.Count{}, maps.Values(byClass))
	slices.SortFunc(list, func(a, b reconcile.Count) int { return cmp.Compare(a.Class, b.Class) })
	return list, nil
}

// AdoptedAt implements reconcile.Findings.
func (f *Findings) AdoptedAt(ctx context.Context) (time.Time, error) {
	state, err := f.ledger.State(ctx)
	if err != nil || !state.Adopted() {
		return time.Time{}, err
	}
	return state.Finished, nil
}

// Marks implements reconcile.Findings.
func (f *Findings) Marks(ctx context.Context, documents []string) (map[run.Mark]run.Audit, error) {
	return f.s.Marks(ctx, documents)
}
