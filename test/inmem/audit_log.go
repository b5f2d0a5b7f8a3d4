package inmem

import (
	"context"
	"maps"
	"slices"
	"time"

	"sqlwriter/internal/fault"
	"sqlwriter/internal/ops"
	"sqlwriter/internal/run"
)

// AuditLog is ops.AuditLog in memory, on the tables of a RunStore. It is safe for concurrent use.
type AuditLog struct{ s *RunStore }

// NewAuditLog makes an empty one of an environment whose times come from now.
func NewAuditLog(now func() time.Time, sysName string) *AuditLog {
	return NewRunStore(now, sysName).AuditLog()
}

// Write implements ops.AuditLog.
func (j *AuditLog) Write(ctx context.Context, a ops.Audit) error {
	a, err := a.Normalize()
	if err != nil {
		return err
	}
	if err := ended(ctx, "inmem: write audit"); err != nil {
		return err
	}
	j.s.mu.Lock()
	defer j.s.mu.Unlock()
	j.add(a)
	return nil
}

// Start implements ops.AuditLog.
func (j *AuditLog) Start(ctx context.Context, r ops.Run, a ops.Audit) error {
	const op = "inmem: start run"
	r, err := r.Normalize()
	if err != nil {
		return err
	}
	a.Run = r.ID
	if a, err = a.Normalize(); err != nil {
		return err
	}
	if err := ended(ctx, op); err != nil {
		return err
	}
	j.s.mu.Lock()
	defer j.s.mu.Unlock()
	if j.s.runOf[r.ID] != nil {
		return fault.New(fault.Internal, op, "run_exists", "there is a run %s already", r.ID)
	}
	stored := &storedRun{items: map[string]*storedItem{}, Run: run.Run{
		ID: r.ID, SysName: j.s.sysName, Kind: run.Kind(r.Kind), Filter: slices.Clone(r.Filter), Matched: r.Matched, AtLeast: r.AtLeast,
		RequestedBy: r.RequestedBy, Why: r.Why, Status: run.RunRunning, Counts: countsOf(r.Counts), StartedAt: j.s.at(), HeartbeatAt: j.s.at(),
	}}
	j.s.runs, j.s.runOf[r.ID] = append(j.s.runs, stored), stored
	j.add(a)
	return nil
}

// Progress implements ops.AuditLog.
func (j *AuditLog) Progress(ctx context.Context, id string, counts map[string]int) (cancel bool, err error) {
	const op = "inmem: run progress"
	if err := ended(ctx, op); err != nil {
		return false, err
	}
	j.s.mu.Lock()
	defer j.s.mu.Unlock()
	r := j.running(id)
	if r == nil {
		return false, fault.New(fault.Internal, op, "no_run", "no run %s is running", id)
	}
	r.Counts, r.HeartbeatAt = countsOf(counts), j.s.at()
	return r.Cancel, nil
}

// End implements ops.AuditLog. A status that is not a last one is internal, code "status".
func (j *AuditLog) End(ctx context.Context, id string, status ops.RunStatus, counts map[string]int) error {
	const op = "inmem: end run"
	if !status.Last() {
		return fault.New(fault.Internal, op, "status", "expected a last status, found %q", status)
	}
	if err := ended(ctx, op); err != nil {
		return err
	}
	j.s.mu.Lock()
	defer j.s.mu.Unlock()
	if r := j.running(id); r != nil {
		r.Status, r.Counts, r.HeartbeatAt, r.EndedAt = status, countsOf(counts), j.s.at(), j.s.at()
	}
	return nil
}

// Cancel implements ops.AuditLog.
func (j *AuditLog) Cancel(ctx context.Context, id string, a ops.Audit) (bool, error) {
	a.Run = id
	a, err := a.Normalize()
	if err != nil {
		return false, err
	}
	if err := ended(ctx, "inmem: cancel run"); err != nil {
		return false, err
	}
	j.s.mu.Lock()
	defer j.s.mu.Unlock()
	r := j.running(id)
	if r == nil {
		return false, nil
	}
	r.Cancel = true
	j.add(a)
	return true, nil
}

// Audits implements ops.AuditLog.
func (j *AuditLog) Audits(ctx context.Context, q ops.AuditQuery) ([]ops.Audit, error) {
	if err := ended(ctx, "inmem: read audits"); err != nil {
		return nil, err
	}
	j.s.mu.Lock()
	defer j.s.mu.Unlock()
	audits := []ops.Audit{}
	wanted := func(e entry) bool {
		return j.s.ours(e.sysName) && (q.Run == "" || q.Run == e.of.Run) &&
			(q.Action == "" || q.Action == e.of.Action) && (q.All || q.Action != "" || e.of.Notable())
	}
	for _, e := range latestOf(j.s.audits, q.Limit, wanted) {
		a := e.of
		a.Detail = slices.Clone(a.Detail)
		audits = append(audits, a)
	}
	return audits, nil
}

func (j *AuditLog) add(a ops.Audit) {
	a.At, a.Detail = j.s.at(), slices.Clone(a.Detail)
	j.s.audits = append(j.s.audits, entry{sysName: j.s.sysName, of: a})
}

// running finds a run of the environment that has not ended; nil when there is none.
func (j *AuditLog) running(id string) *storedRun {
	if r := j.s.runOf[id]; r != nil && j.s.ours(r.SysName) && r.Status == run.RunRunning {
		return r
	}
	return nil
}

// latest are the last of a list, newest first, at most limit.
func latest[T any](list []T, limit int) []T {
	return latestOf(list, limit, func(T) bool { return true })
}

// latestOf are those that are wanted.
func latestOf[T any](list []T, limit int, wanted func(T) bool) []T {
	newest := []T{}
	for _, one := range slices.Backward(list) {
		if len(newest) >= limit {
			break
		}
		if wanted(one) {
			newest = append(newest, one)
		}
	}
	return newest
}

// countsOf is a copy; an object always.
func countsOf(counts map[string]int) map[string]int {
	if counts == nil {
		return map[string]int{}
	}
	return maps.Clone(counts)
}
