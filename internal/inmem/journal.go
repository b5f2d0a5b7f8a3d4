package inmem

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"sqlwriter/internal/fault"
	"sqlwriter/internal/ops"
)

// Journal is ops.Journal in memory. It is safe for concurrent use.
type Journal struct {
	now func() time.Time

	mu sync.Mutex
	// runs and audits stand in the order in which they came.
	runs   []*ops.Run
	audits []ops.Audit
}

// NewJournal makes an empty one whose times come from now.
func NewJournal(now func() time.Time) *Journal { return &Journal{now: now} }

// Write implements ops.Journal.
func (j *Journal) Write(ctx context.Context, a ops.Audit) error {
	a, err := a.Kept()
	if err != nil {
		return err
	}
	if err := ended(ctx, "inmem: write audit"); err != nil {
		return err
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	j.add(a)
	return nil
}

// Start implements ops.Journal.
func (j *Journal) Start(ctx context.Context, r ops.Run, a ops.Audit) error {
	const op = "inmem: start run"
	r, err := r.Kept()
	if err != nil {
		return err
	}
	if a, err = a.Kept(); err != nil {
		return err
	}
	if err := ended(ctx, op); err != nil {
		return err
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.run(r.ID) != nil {
		return fault.New(fault.Internal, op, "run_exists", "there is a run %s already", r.ID)
	}
	r.Counts, r.StartedAt = countsOf(r.Counts), j.at()
	j.runs = append(j.runs, &r)
	j.add(a)
	return nil
}

// Progress implements ops.Journal.
func (j *Journal) Progress(ctx context.Context, id string, counts map[string]int) (cancel bool, err error) {
	const op = "inmem: run progress"
	if err := ended(ctx, op); err != nil {
		return false, err
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	r := j.running(id)
	if r == nil {
		return false, fault.New(fault.Internal, op, "no_run", "no run %s is running", id)
	}
	r.Counts = countsOf(counts)
	return r.Cancel, nil
}

// End implements ops.Journal. A status that is not a last one is internal, code "status".
func (j *Journal) End(ctx context.Context, id string, status ops.RunStatus, counts map[string]int) error {
	const op = "inmem: end run"
	if !status.Last() {
		return fault.New(fault.Internal, op, "status", "expected a last status, found %q", status)
	}
	if err := ended(ctx, op); err != nil {
		return err
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	if r := j.running(id); r != nil {
		r.Status, r.Counts, r.EndedAt = status, countsOf(counts), j.at()
	}
	return nil
}

// Cancel implements ops.Journal.
func (j *Journal) Cancel(ctx context.Context, id string, a ops.Audit) (bool, error) {
	a, err := a.Kept()
	if err != nil {
		return false, err
	}
	if err := ended(ctx, "inmem: cancel run"); err != nil {
		return false, err
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	r := j.running(id)
	if r == nil {
		return false, nil
	}
	r.Cancel = true
	j.add(a)
	return true, nil
}

// Runs implements ops.Journal.
func (j *Journal) Runs(ctx context.Context, limit int) ([]ops.Run, error) {
	if err := ended(ctx, "inmem: read runs"); err != nil {
		return nil, err
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	runs := []ops.Run{}
	for _, r := range latest(j.runs, limit) {
		found := *r
		found.Filter, found.Counts = slices.Clone(r.Filter), maps.Clone(r.Counts)
		runs = append(runs, found)
	}
	return runs, nil
}

// Audits implements ops.Journal.
func (j *Journal) Audits(ctx context.Context, limit int) ([]ops.Audit, error) {
	if err := ended(ctx, "inmem: read audits"); err != nil {
		return nil, err
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	audits := latest(j.audits, limit)
	for i := range audits {
		audits[i].Detail = slices.Clone(audits[i].Detail)
	}
	return audits, nil
}

// at is now as a database keeps it: UTC, milliseconds.
func (j *Journal) at() time.Time { return j.now().UTC().Truncate(time.Millisecond) }

func (j *Journal) add(a ops.Audit) {
	a.At = j.at()
	j.audits = append(j.audits, a)
}

// run finds a run; nil when there is none.
func (j *Journal) run(id string) *ops.Run {
	for _, r := range j.runs {
		if r.ID == id {
			return r
		}
	}
	return nil
}

// running finds a run that has not ended.
func (j *Journal) running(id string) *ops.Run {
	if r := j.run(id); r != nil && r.Status == ops.Running {
		return r
	}
	return nil
}

// latest is a copy of the last of a list, newest first.
func latest[T any](list []T, limit int) []T {
	n := max(0, min(limit, len(list)))
	newest := append([]T{}, list[len(list)-n:]...)
	slices.Reverse(newest)
	return newest
}

// countsOf is a copy; an object always.
func countsOf(counts map[string]int) map[string]int {
	if counts == nil {
		return map[string]int{}
	}
	return maps.Clone(counts)
}
