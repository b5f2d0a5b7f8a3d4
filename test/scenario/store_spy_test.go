package scenario

import (
	"context"
	"time"

	"sqlwriter/internal/invoice"
	"sqlwriter/internal/ops"
	"sqlwriter/internal/run"
)

// storeSpy wraps the run store, which is in the same database: each call is a request.
type storeSpy struct{ i *instance }

var _ run.Store = storeSpy{}

// use makes one request of the run store.
func (d storeSpy) use(ctx context.Context, f func(ctx context.Context) error) error {
	w := d.i.w
	w.mu.Lock()
	w.storeCalls++
	w.mu.Unlock()
	if err := w.spend(ctx, 2*time.Millisecond); err != nil {
		return err
	}
	if err := w.breaks(ctx, request{instance: d.i.name, bookkeeping: true}); err != nil {
		return err
	}
	return f(ctx)
}

// auditLogSpy stands before the audit log.
type auditLogSpy struct {
	ops.AuditLog
	i *instance
}

// Write implements ops.AuditLog.
func (d auditLogSpy) Write(ctx context.Context, a run.Audit) error {
	return storeSpy{d.i}.use(ctx, func(ctx context.Context) error { return d.AuditLog.Write(ctx, a) })
}

func (d storeSpy) AddChunk(ctx context.Context, l run.RunLease, c run.Chunk, audits ...run.Audit) error {
	return d.use(ctx, func(ctx context.Context) error { return d.i.w.store.AddChunk(ctx, l, c, audits...) })
}

func (d storeSpy) StartRun(ctx context.Context, r run.Run, a run.Audit) error {
	return d.use(ctx, func(ctx context.Context) error { return d.i.w.store.StartRun(ctx, r, a) })
}

func (d storeSpy) Run(ctx context.Context, id string) (r0 run.Run, r1 bool, err error) {
	err = d.use(ctx, func(ctx context.Context) error { r0, r1, err = d.i.w.store.Run(ctx, id); return err })
	return r0, r1, err
}

func (d storeSpy) ListRuns(ctx context.Context, before string, limit int) (r0 []run.Run, err error) {
	err = d.use(ctx, func(ctx context.Context) error { r0, err = d.i.w.store.ListRuns(ctx, before, limit); return err })
	return r0, err
}

func (d storeSpy) BatchCounts(ctx context.Context, id string) (r0 map[run.BatchStatus]int, err error) {
	err = d.use(ctx, func(ctx context.Context) error { r0, err = d.i.w.store.BatchCounts(ctx, id); return err })
	return r0, err
}

func (d storeSpy) Stats(ctx context.Context, id string) (r0 run.Stats, err error) {
	err = d.use(ctx, func(ctx context.Context) error { r0, err = d.i.w.store.Stats(ctx, id); return err })
	return r0, err
}

func (d storeSpy) ClaimRun(
	ctx context.Context, id string, epoch, shown int, wk run.Worker, stale time.Duration,
) (r0 run.Run, r1 bool, err error) {
	err = d.use(ctx, func(ctx context.Context) error {
		r0, r1, err = d.i.w.store.ClaimRun(ctx, id, epoch, shown, wk, stale)
		return err
	})
	return r0, r1, err
}

func (d storeSpy) BeatRun(ctx context.Context, l run.RunLease) (r0 bool, err error) {
	err = d.use(ctx, func(ctx context.Context) error { r0, err = d.i.w.store.BeatRun(ctx, l); return err })
	return r0, err
}

func (d storeSpy) Known(ctx context.Context, id string, documents []string) (r0 map[string]bool, err error) {
	err = d.use(ctx, func(ctx context.Context) error { r0, err = d.i.w.store.Known(ctx, id, documents); return err })
	return r0, err
}

func (d storeSpy) EndHandOff(ctx context.Context, l run.RunLease, a run.Audit) error {
	return d.use(ctx, func(ctx context.Context) error { return d.i.w.store.EndHandOff(ctx, l, a) })
}

func (d storeSpy) ReleaseRun(ctx context.Context, l run.RunLease) error {
	return d.use(ctx, func(ctx context.Context) error { return d.i.w.store.ReleaseRun(ctx, l) })
}

func (d storeSpy) CompleteRun(
	ctx context.Context, id string, stale time.Duration, audit func(run.RunStatus, run.Stats) run.Audit,
) (r0 bool, err error) {
	err = d.use(ctx, func(ctx context.Context) error {
		r0, err = d.i.w.store.CompleteRun(ctx, id, stale, audit)
		return err
	})
	return r0, err
}

func (d storeSpy) CancelRun(ctx context.Context, id string, a run.Audit) (r0 bool, err error) {
	err = d.use(ctx, func(ctx context.Context) error { r0, err = d.i.w.store.CancelRun(ctx, id, a); return err })
	return r0, err
}

func (d storeSpy) FailRun(
	ctx context.Context, id, reason string, stale time.Duration, a run.Audit,
) (r0 bool, err error) {
	err = d.use(ctx, func(ctx context.Context) error {
		r0, err = d.i.w.store.FailRun(ctx, id, reason, stale, a)
		return err
	})
	return r0, err
}

func (d storeSpy) ResumeRun(ctx context.Context, id string, a run.Audit) (r0 bool, err error) {
	err = d.use(ctx, func(ctx context.Context) error { r0, err = d.i.w.store.ResumeRun(ctx, id, a); return err })
	return r0, err
}

func (d storeSpy) ClaimBatch(
	ctx context.Context, id string, tk run.Ticket, wk run.Worker, stale time.Duration, a run.Audit,
) (r0 run.Claimed, err error) {
	err = d.use(ctx, func(ctx context.Context) error {
		r0, err = d.i.w.store.ClaimBatch(ctx, id, tk, wk, stale, a)
		return err
	})
	return r0, err
}

func (d storeSpy) BeatBatch(ctx context.Context, h run.BatchLease) (r0 bool, err error) {
	err = d.use(ctx, func(ctx context.Context) error { r0, err = d.i.w.store.BeatBatch(ctx, h); return err })
	return r0, err
}

func (d storeSpy) SaveOutcomes(
	ctx context.Context, h run.BatchLease, outcomes []run.ItemOutcome, details []run.ErrorDetail,
) error {
	return d.use(ctx, func(ctx context.Context) error { return d.i.w.store.SaveOutcomes(ctx, h, outcomes, details) })
}

func (d storeSpy) FinishBatch(
	ctx context.Context, h run.BatchLease, audit func(run.BatchStats) run.Audit,
) (r0 run.BatchStats, err error) {
	err = d.use(ctx, func(ctx context.Context) error { r0, err = d.i.w.store.FinishBatch(ctx, h, audit); return err })
	return r0, err
}

func (d storeSpy) ReleaseBatch(ctx context.Context, h run.BatchLease, audits ...run.Audit) error {
	return d.use(ctx, func(ctx context.Context) error { return d.i.w.store.ReleaseBatch(ctx, h, audits...) })
}

func (d storeSpy) FailBatch(ctx context.Context, h run.BatchLease, reason string, a run.Audit) error {
	return d.use(ctx, func(ctx context.Context) error { return d.i.w.store.FailBatch(ctx, h, reason, a) })
}

func (d storeSpy) Batch(ctx context.Context, id string) (r0 run.Batch, r1 []run.ErrorDetail, r2 bool, err error) {
	err = d.use(ctx, func(ctx context.Context) error { r0, r1, r2, err = d.i.w.store.Batch(ctx, id); return err })
	return r0, r1, r2, err
}

func (d storeSpy) ListBatches(
	ctx context.Context, id string, status run.BatchStatus, after string, limit int,
) (r0 []run.Batch, err error) {
	err = d.use(ctx, func(ctx context.Context) error {
		r0, err = d.i.w.store.ListBatches(ctx, id, status, after, limit)
		return err
	})
	return r0, err
}

func (d storeSpy) Items(
	ctx context.Context, id string, outcomes []invoice.Outcome, afterKey string, limit int,
) (r0 []run.ItemOutcome, err error) {
	err = d.use(ctx, func(ctx context.Context) error {
		r0, err = d.i.w.store.Items(ctx, id, outcomes, afterKey, limit)
		return err
	})
	return r0, err
}

func (d storeSpy) RequeueBatch(ctx context.Context, id string, a run.Audit) (r0 bool, err error) {
	err = d.use(ctx, func(ctx context.Context) error { r0, err = d.i.w.store.RequeueBatch(ctx, id, a); return err })
	return r0, err
}

func (d storeSpy) DeadLetter(
	ctx context.Context, id string, attempt int, reason string, stale time.Duration, a run.Audit,
) (r0 bool, err error) {
	err = d.use(ctx, func(ctx context.Context) error {
		r0, err = d.i.w.store.DeadLetter(ctx, id, attempt, reason, stale, a)
		return err
	})
	return r0, err
}

func (d storeSpy) Write(ctx context.Context, a run.Audit) error {
	return d.use(ctx, func(ctx context.Context) error { return d.i.w.store.Write(ctx, a) })
}

func (d storeSpy) Unsent(ctx context.Context, id string, limit int) (r0 []run.Batch, err error) {
	err = d.use(ctx, func(ctx context.Context) error { r0, err = d.i.w.store.Unsent(ctx, id, limit); return err })
	return r0, err
}

func (d storeSpy) MarkQueued(ctx context.Context, l run.RunLease, batches []run.Batch) (r0 int, err error) {
	err = d.use(ctx, func(ctx context.Context) error { r0, err = d.i.w.store.MarkQueued(ctx, l, batches); return err })
	return r0, err
}

func (d storeSpy) MarkUnsent(
	ctx context.Context, batches []run.Batch, reason string, counted bool, audit func(run.Batch) run.Audit,
) (r0 int, r1 int, err error) {
	err = d.use(ctx, func(ctx context.Context) error {
		r0, r1, err = d.i.w.store.MarkUnsent(ctx, batches, reason, counted, audit)
		return err
	})
	return r0, r1, err
}

func (d storeSpy) ToSend(ctx context.Context, sys string, limit int) (r0 []run.Batch, err error) {
	err = d.use(ctx, func(ctx context.Context) error { r0, err = d.i.w.store.ToSend(ctx, sys, limit); return err })
	return r0, err
}

func (d storeSpy) OnTheWay(ctx context.Context, sys string) (r0 run.OnTheWay, err error) {
	err = d.use(ctx, func(ctx context.Context) error { r0, err = d.i.w.store.OnTheWay(ctx, sys); return err })
	return r0, err
}

func (d storeSpy) RequeueSilent(ctx context.Context, sys string, silent time.Duration, limit int) (r0 int, err error) {
	err = d.use(ctx, func(ctx context.Context) error {
		r0, err = d.i.w.store.RequeueSilent(ctx, sys, silent, limit)
		return err
	})
	return r0, err
}

func (d storeSpy) Rescue(
	ctx context.Context, sys string, stale, released time.Duration, limit int,
) (r0 int, r1 int, err error) {
	err = d.use(ctx, func(ctx context.Context) error {
		r0, r1, err = d.i.w.store.Rescue(ctx, sys, stale, released, limit)
		return err
	})
	return r0, r1, err
}

func (d storeSpy) OpenRuns(ctx context.Context, sys string, limit int) (r0 []run.Run, err error) {
	err = d.use(ctx, func(ctx context.Context) error { r0, err = d.i.w.store.OpenRuns(ctx, sys, limit); return err })
	return r0, err
}
