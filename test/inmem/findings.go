package inmem

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"sqlwriter/internal/adopt"
	"sqlwriter/internal/ops"
	"sqlwriter/internal/reconcile"
	"sqlwriter/internal/run"
)

// Findings are reconcile.Findings and reconcile.Accepter on the tables of a RunStore. They are safe for concurrent use.
type Findings struct {
	s      *RunStore
	ledger adopt.Ledger
}

var (
	_ reconcile.Findings = (*Findings)(nil)
	_ reconcile.Accepter = (*Findings)(nil)
)

// findingID identifies a row.
type findingID struct {
	sysName string
	key     reconcile.Key
}

// Findings keeps those of the store's environment in the same database. The ledger says when it was adopted.
func (s *RunStore) Findings(ledger adopt.Ledger) *Findings { return &Findings{s, ledger} }

func (f *Findings) row(k reconcile.Key) *reconcile.Finding {
	return f.s.findings[findingID{f.s.sysName, k}]
}

// Save implements reconcile.Findings.
func (f *Findings) Save(ctx context.Context, runID string, seen []reconcile.Seen, gone []reconcile.Key) (opened, closed int, err error) {
	if err := ended(ctx, "inmem: save findings"); err != nil {
		return 0, 0, err
	}
	f.s.mu.Lock()
	defer f.s.mu.Unlock()
	now, room := f.s.at(), f.room()
	seen = slices.Clone(seen)
	slices.SortStableFunc(seen, func(a, b reconcile.Seen) int { return compareKeys(a.Key, b.Key) })
	for _, one := range seen {
		row := f.row(one.Key)
		opens := row == nil || row.State == reconcile.Gone || row.State == reconcile.Accepted && row.AcceptedHash != one.RowHash
		if opens && room[one.Class] < reconcile.MaxOpen {
			if row == nil {
				row = &reconcile.Finding{}
				f.s.findings[findingID{f.s.sysName, one.Key}] = row
			}
			row.State, row.FirstSeen, row.QueuedBy = reconcile.Open, now, ""
			room[one.Class]++
			opened++
		}
		if row != nil && row.State != reconcile.Gone {
			one.Detail = ops.Truncate(one.Detail, reconcile.MaxDetail)
			row.Seen, row.LastSeen, row.Run = one, now, runID
		}
	}
	once := map[reconcile.Key]bool{}
	for _, k := range gone {
		row := f.row(k)
		if row != nil && !once[k] && (row.State == reconcile.Gone) == (row.Run == runID) {
			row.State, row.Run, once[k] = reconcile.Gone, runID, true
		}
	}
	return opened, len(once), nil
}

// room counts the environment's open findings by class.
func (f *Findings) room() map[reconcile.Class]int {
	n := map[reconcile.Class]int{}
	for id, row := range f.s.findings {
		if id.sysName == f.s.sysName && row.State == reconcile.Open {
			n[id.key.Class]++
		}
	}
	return n
}

// compareKeys compares in the order of List.
func compareKeys(a, b reconcile.Key) int {
	return cmp.Or(cmp.Compare(a.Class, b.Class), cmp.Compare(a.Line, b.Line), cmp.Compare(run.DocumentKey(a.Document), run.DocumentKey(b.Document)))
}

// List implements reconcile.Findings.
func (f *Findings) List(ctx context.Context, q reconcile.Query, after *reconcile.Key, limit int) ([]reconcile.Finding, error) {
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
		if id.sysName == f.s.sysName && slices.Contains(classes, id.key.Class) && (q.State == "" || row.State == q.State) &&
			(q.Line == 0 || id.key.Line == q.Line) && (!q.Unqueued || row.QueuedBy == "") &&
			(q.Mend == reconcile.ByPeople || row.Mend == q.Mend) && (after == nil || compareKeys(id.key, *after) > 0) {
			list = append(list, *row)
		}
	}
	slices.SortFunc(list, func(a, b reconcile.Finding) int { return compareKeys(a.Key, b.Key) })
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
		if id.sysName != f.s.sysName || row.State == reconcile.Gone {
			continue
		}
		c := byClass[id.key.Class]
		c.Class = id.key.Class
		if row.State == reconcile.Accepted {
			c.Accepted++
		} else {
			if c.Open == 0 || row.FirstSeen.Before(c.First) {
				c.First = row.FirstSeen
			}
			c.Open++
		}
		byClass[id.key.Class] = c
	}
	list := []reconcile.Count{}
	for _, c := range byClass {
		list = append(list, c)
	}
	slices.SortFunc(list, func(a, b reconcile.Count) int { return cmp.Compare(a.Class, b.Class) })
	return list, nil
}

// MarkQueued implements reconcile.Findings.
func (f *Findings) MarkQueued(ctx context.Context, by string, keys []reconcile.Key) error {
	if err := ended(ctx, "inmem: mark findings queued"); err != nil {
		return err
	}
	f.s.mu.Lock()
	defer f.s.mu.Unlock()
	for _, k := range keys {
		if row := f.row(k); row != nil && row.State == reconcile.Open && row.QueuedBy == "" {
			row.QueuedBy = by
		}
	}
	return nil
}

// Accept implements reconcile.Accepter.
func (f *Findings) Accept(ctx context.Context, keys []reconcile.Key, a run.Audit) error {
	const op = "inmem: accept findings"
	a, err := normalizedAudit(a)
	if err != nil {
		return err
	}
	if err := ended(ctx, op); err != nil || len(keys) == 0 {
		return err
	}
	f.s.mu.Lock()
	defer f.s.mu.Unlock()
	for _, k := range keys {
		if row := f.row(k); row == nil || row.State == reconcile.Gone {
			return changed(op, fmt.Sprintf("the finding %s of line %d is gone or unknown", k.Class, k.Line))
		}
	}
	for _, k := range keys {
		row := f.row(k)
		row.State, row.AcceptedHash, row.By, row.Why = reconcile.Accepted, row.RowHash, a.By, a.Why
	}
	f.s.note(a)
	return nil
}

// LastCompleted implements reconcile.Findings.
func (f *Findings) LastCompleted(ctx context.Context, kind run.Kind) (runID string, began time.Time, ok bool, err error) {
	if err := ended(ctx, "inmem: last completed run"); err != nil {
		return "", time.Time{}, false, err
	}
	f.s.mu.Lock()
	defer f.s.mu.Unlock()
	if r := f.s.lastCompleted(kind); r != nil {
		return r.ID, r.StartedAt, true, nil
	}
	return "", time.Time{}, false, nil
}

// lastCompleted is the last run of a kind that completed and named no documents; nil if there is none.
func (s *RunStore) lastCompleted(kind run.Kind) *storedRun {
	for _, r := range slices.Backward(s.runs) {
		if r.Kind == kind && s.ours(r.SysName) && r.Status == run.RunCompleted && r.Named == 0 {
			return r
		}
	}
	return nil
}

// Waits implements reconcile.Findings.
func (f *Findings) Waits(ctx context.Context, r run.Run, follows string) (bool, error) {
	if err := ended(ctx, "inmem: older runs"); err != nil {
		return false, err
	}
	f.s.mu.Lock()
	defer f.s.mu.Unlock()
	if followed := f.s.runOf[follows]; followed != nil && followed.Status == run.RunRunning {
		return true, nil
	}
	for _, older := range f.s.runs[:max(0, slices.Index(f.s.runs, f.s.runOf[r.ID]))] {
		if older.Kind == r.Kind && f.s.ours(older.SysName) && older.Status == run.RunRunning {
			return true, nil
		}
	}
	return false, nil
}

// AdoptedAt implements reconcile.Findings.
func (f *Findings) AdoptedAt(ctx context.Context) (time.Time, error) {
	state, err := f.ledger.State(ctx)
	if err != nil || !state.Adopted() {
		return time.Time{}, err
	}
	return state.Finished, nil
}
