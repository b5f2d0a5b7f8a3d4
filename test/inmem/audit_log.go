package inmem

import (
	"context"
	"slices"

	"sqlwriter/internal/ops"
	"sqlwriter/internal/run"
)

// AuditLog is ops.AuditLog in memory, on the tables of a RunStore. It is safe for concurrent use.
type AuditLog struct{ s *RunStore }

// Write implements ops.AuditLog.
func (j *AuditLog) Write(ctx context.Context, a run.Audit) error { return j.s.Write(ctx, a) }

// Audits implements ops.AuditLog.
func (j *AuditLog) Audits(ctx context.Context, q ops.AuditQuery) ([]run.Audit, error) {
	if err := ended(ctx, "inmem: read audits"); err != nil {
		return nil, err
	}
	j.s.mu.Lock()
	defer j.s.mu.Unlock()
	audits := []run.Audit{}
	wanted := func(e entry) bool {
		return j.s.ours(e.sysName) && (q.Run == "" || q.Run == e.of.Run) &&
			(q.Before == 0 || e.of.ID < q.Before) && (q.Action == "" || q.Action == e.of.Action) &&
			(q.All || q.Action != "" || e.of.Notable())
	}
	for _, e := range latestOf(j.s.audits, q.Limit, wanted) {
		a := e.of
		a.Detail = slices.Clone(a.Detail)
		audits = append(audits, a)
	}
	return audits, nil
}

// Marks implements ops.AuditLog.
func (j *AuditLog) Marks(ctx context.Context, documents []string) (map[run.Mark]run.Audit, error) {
	return j.s.Marks(ctx, documents)
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
