package inmem

import (
	"context"
	"slices"
	"time"

	"sqlwriter/internal/ops"
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
			(q.Before == 0 || e.of.ID < q.Before) && (q.Action == "" || q.Action == e.of.Action) && (q.All || q.Action != "" || e.of.Notable())
	}
	for _, e := range latestOf(j.s.audits, q.Limit, wanted) {
		a := e.of
		a.Detail = slices.Clone(a.Detail)
		audits = append(audits, a)
	}
	return audits, nil
}

func (j *AuditLog) add(a ops.Audit) {
	j.s.lastAudit++
	a.ID, a.At, a.Detail = j.s.lastAudit, j.s.at(), slices.Clone(a.Detail)
	j.s.audits = append(j.s.audits, entry{sysName: j.s.sysName, of: a})
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
