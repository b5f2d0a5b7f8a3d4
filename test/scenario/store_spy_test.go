package scenario

import (
	"context"
	"time"

	"sqlwriter/internal/ops"
	"sqlwriter/internal/run"
	"sqlwriter/test/spies"
)

// store is the run store, which is in the same database: each call is a request.
func (i *instance) store() run.Store {
	return spies.RunStore(i.w.store, func(ctx context.Context, _, _ string, do func(context.Context) error) error {
		return i.bookkeeping(ctx, do)
	})
}

// bookkeeping makes one request of the run store or the audit log.
func (i *instance) bookkeeping(ctx context.Context, do func(ctx context.Context) error) error {
	if err := i.w.spend(ctx, 2*time.Millisecond); err != nil {
		return err
	}
	if err := i.w.breaks(ctx, request{instance: i.name}); err != nil {
		return err
	}
	return do(ctx)
}

// auditLogSpy stands before the audit log.
type auditLogSpy struct {
	ops.AuditLog
	i *instance
}

// Write implements ops.AuditLog.
func (d auditLogSpy) Write(ctx context.Context, a run.Audit) error {
	return d.i.bookkeeping(ctx, func(ctx context.Context) error { return d.AuditLog.Write(ctx, a) })
}
