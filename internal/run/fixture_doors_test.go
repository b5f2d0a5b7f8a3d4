package run_test

import (
	"context"
	"encoding/json"
	"time"

	"sqlwriter/internal/breaker"
	"sqlwriter/internal/commit"
	"sqlwriter/internal/invoice"
	"sqlwriter/internal/run"
)

// The doors are the ports of an instance: each use goes through instance.use.
type (
	doorStore     struct{ i *instance }
	doorSelection struct{ i *instance }
	doorDocs      struct{ i *instance }
	doorSink      struct{ i *instance }
	doorControl   struct{ i *instance }
	doorEvidence  struct{ i *instance }
	doorQueue     struct {
		i *instance
		b *bus
	}
)

var _ run.Store = doorStore{}

// withStore uses the run store and looks at what it did to the batches.
func (d doorStore) withStore(ctx context.Context, op string, f func(ctx context.Context) error) error {
	return d.i.use(ctx, op, true, func() error {
		w := d.i.w
		w.mu.Lock()
		defer w.mu.Unlock()
		defer w.watch(op)
		if w.frozen {
			ctx = context.WithoutCancel(ctx) // what was sent arrives, however late
		}
		return f(ctx)
	})
}

func (d doorStore) AddChunk(ctx context.Context, l run.RunLease, c run.Chunk, audits ...run.Audit) error {
	return d.withStore(ctx, "AddChunk", func(ctx context.Context) error {
		err := d.i.w.store.AddChunk(ctx, l, c, audits...)
		if err == nil {
			for _, b := range c.Batches {
				d.i.w.held -= len(b)
			}
		}
		return err
	})
}

func (d doorSelection) Page(ctx context.Context, q run.Query, continuation string) (found []commit.PendingDoc, next string, err error) {
	err = d.i.use(ctx, "Page", false, func() error {
		found, next, err = d.i.w.docs.Selection(d.i.w.pages).Page(ctx, q, continuation)
		d.i.w.mu.Lock()
		defer d.i.w.mu.Unlock()
		d.i.w.held += len(found)
		d.i.w.mostHeld = max(d.i.w.mostHeld, d.i.w.held)
		return err
	})
	return found, next, err
}

func (d doorDocs) Read(ctx context.Context, id string) (raw json.RawMessage, err error) {
	err = d.i.use(ctx, "Read", false, func() error { raw, err = d.i.w.docs.Read(ctx, id); return err })
	return raw, err
}

func (d doorDocs) ReadMany(ctx context.Context, ids []string) (raws []json.RawMessage, err error) {
	err = d.i.use(ctx, "ReadMany", false, func() error { raws, err = d.i.w.docs.ReadMany(ctx, ids); return err })
	return raws, err
}

func (d doorDocs) Record(ctx context.Context, id, etag string, s invoice.State) (next string, err error) {
	err = d.i.use(ctx, "Record", false, func() error { next, err = d.i.w.docs.Record(ctx, id, etag, s); return err })
	return next, err
}

func (d doorSink) Apply(ctx context.Context, items []commit.Item, mode commit.Mode, known breaker.Heartbeat) (outcomes []commit.Outcome, err error) {
	err = d.i.use(ctx, "Apply", true, func() error { outcomes, err = d.i.w.sink.Apply(ctx, items, mode, known); return err })
	return outcomes, err
}

func (d doorSink) Heartbeat(ctx context.Context, known breaker.Heartbeat) (row breaker.Heartbeat, err error) {
	err = d.i.use(ctx, "Heartbeat", true, func() error { row, err = d.i.w.sink.Heartbeat(ctx, known); return err })
	return row, err
}

func (d doorSink) TakeOver(ctx context.Context, known breaker.Heartbeat) (row breaker.Heartbeat, err error) {
	err = d.i.use(ctx, "TakeOver", true, func() error { row, err = d.i.w.sink.TakeOver(ctx, known); return err })
	return row, err
}

func (d doorControl) Load(ctx context.Context) (c breaker.Control, etag string, err error) {
	err = d.i.use(ctx, "Load", false, func() error { c, etag, err = d.i.w.control.Load(ctx); return err })
	return c, etag, err
}

func (d doorControl) Store(ctx context.Context, c breaker.Control, etag string) (next string, err error) {
	err = d.i.use(ctx, "StoreControl", false, func() error { next, err = d.i.w.control.Store(ctx, c, etag); return err })
	return next, err
}

func (d doorEvidence) Keep(ctx context.Context, name string, content []byte) error {
	return d.i.use(ctx, "Keep", false, func() error { return d.i.w.evidence.Keep(ctx, name, content) })
}

func (d doorQueue) Send(ctx context.Context, messages []run.Outgoing) (errs []error) {
	op := "SendBatch"
	if d.b == d.i.w.runs {
		op = "SendRun"
	}
	err := d.i.use(ctx, op, false, func() error { errs = d.b.Send(ctx, messages); return nil })
	if err != nil {
		errs = make([]error, len(messages))
		for k := range errs {
			errs[k] = err
		}
	}
	return errs
}

func (d doorStore) StartRun(ctx context.Context, r run.Run, a run.Audit) error {
	return d.withStore(ctx, "StartRun", func(ctx context.Context) error { return d.i.w.store.StartRun(ctx, r, a) })
}

func (d doorStore) Run(ctx context.Context, id string) (r0 run.Run, r1 bool, err error) {
	err = d.withStore(ctx, "Run", func(ctx context.Context) error { r0, r1, err = d.i.w.store.Run(ctx, id); return err })
	return r0, r1, err
}

func (d doorStore) ListRuns(ctx context.Context, limit int) (r0 []run.Run, err error) {
	err = d.withStore(ctx, "ListRuns", func(ctx context.Context) error { r0, err = d.i.w.store.ListRuns(ctx, limit); return err })
	return r0, err
}

func (d doorStore) BatchCounts(ctx context.Context, id string) (r0 map[run.BatchStatus]int, err error) {
	err = d.withStore(ctx, "JobCounts", func(ctx context.Context) error { r0, err = d.i.w.store.BatchCounts(ctx, id); return err })
	return r0, err
}

func (d doorStore) Stats(ctx context.Context, id string) (r0 run.Stats, err error) {
	err = d.withStore(ctx, "Stats", func(ctx context.Context) error { r0, err = d.i.w.store.Stats(ctx, id); return err })
	return r0, err
}

func (d doorStore) ClaimRun(ctx context.Context, id string, epoch, shown int, wk run.Worker, stale time.Duration) (r0 run.Run, r1 bool, err error) {
	err = d.withStore(ctx, "ClaimRun", func(ctx context.Context) error {
		r0, r1, err = d.i.w.store.ClaimRun(ctx, id, epoch, shown, wk, stale)
		return err
	})
	return r0, r1, err
}

func (d doorStore) BeatRun(ctx context.Context, l run.RunLease) (r0 bool, err error) {
	err = d.withStore(ctx, "BeatRun", func(ctx context.Context) error { r0, err = d.i.w.store.BeatRun(ctx, l); return err })
	return r0, err
}

func (d doorStore) Known(ctx context.Context, id string, documents []string) (r0 map[string]bool, err error) {
	err = d.withStore(ctx, "Known", func(ctx context.Context) error { r0, err = d.i.w.store.Known(ctx, id, documents); return err })
	return r0, err
}

func (d doorStore) EndHandOff(ctx context.Context, l run.RunLease, a run.Audit) error {
	return d.withStore(ctx, "EndHandOff", func(ctx context.Context) error { return d.i.w.store.EndHandOff(ctx, l, a) })
}

func (d doorStore) ReleaseRun(ctx context.Context, l run.RunLease) error {
	return d.withStore(ctx, "ReleaseRun", func(ctx context.Context) error { return d.i.w.store.ReleaseRun(ctx, l) })
}

func (d doorStore) CompleteRun(ctx context.Context, id string, stale time.Duration, audit func(run.RunStatus, run.Stats) run.Audit) (r0 bool, err error) {
	err = d.withStore(ctx, "CompleteRun", func(ctx context.Context) error { r0, err = d.i.w.store.CompleteRun(ctx, id, stale, audit); return err })
	return r0, err
}

func (d doorStore) CancelRun(ctx context.Context, id string, a run.Audit) (r0 bool, err error) {
	err = d.withStore(ctx, "CancelRun", func(ctx context.Context) error { r0, err = d.i.w.store.CancelRun(ctx, id, a); return err })
	return r0, err
}

func (d doorStore) FailRun(ctx context.Context, id, reason string, stale time.Duration, a run.Audit) (r0 bool, err error) {
	err = d.withStore(ctx, "FailRun", func(ctx context.Context) error { r0, err = d.i.w.store.FailRun(ctx, id, reason, stale, a); return err })
	return r0, err
}

func (d doorStore) ResumeRun(ctx context.Context, id string, a run.Audit) (r0 bool, err error) {
	err = d.withStore(ctx, "ResumeRun", func(ctx context.Context) error { r0, err = d.i.w.store.ResumeRun(ctx, id, a); return err })
	return r0, err
}

func (d doorStore) ClaimBatch(ctx context.Context, id string, tk run.Ticket, wk run.Worker, stale time.Duration, a run.Audit) (r0 run.Claimed, err error) {
	err = d.withStore(ctx, "ClaimJob", func(ctx context.Context) error {
		r0, err = d.i.w.store.ClaimBatch(ctx, id, tk, wk, stale, a)
		return err
	})
	return r0, err
}

func (d doorStore) BeatBatch(ctx context.Context, h run.BatchLease) (r0 bool, err error) {
	err = d.withStore(ctx, "BeatJob", func(ctx context.Context) error { r0, err = d.i.w.store.BeatBatch(ctx, h); return err })
	return r0, err
}

func (d doorStore) SaveOutcomes(ctx context.Context, h run.BatchLease, outcomes []run.ItemOutcome, details []run.ErrorDetail) error {
	return d.withStore(ctx, "SaveOutcomes", func(ctx context.Context) error { return d.i.w.store.SaveOutcomes(ctx, h, outcomes, details) })
}

func (d doorStore) FinishBatch(ctx context.Context, h run.BatchLease, audit func(run.BatchStats) run.Audit) (r0 run.BatchStats, err error) {
	err = d.withStore(ctx, "FinishJob", func(ctx context.Context) error { r0, err = d.i.w.store.FinishBatch(ctx, h, audit); return err })
	return r0, err
}

func (d doorStore) ReleaseBatch(ctx context.Context, h run.BatchLease, audits ...run.Audit) error {
	return d.withStore(ctx, "ReleaseJob", func(ctx context.Context) error { return d.i.w.store.ReleaseBatch(ctx, h, audits...) })
}

func (d doorStore) FailBatch(ctx context.Context, h run.BatchLease, reason string, a run.Audit) error {
	return d.withStore(ctx, "FailJob", func(ctx context.Context) error { return d.i.w.store.FailBatch(ctx, h, reason, a) })
}

func (d doorStore) Batch(ctx context.Context, id string) (r0 run.Batch, r1 []run.ErrorDetail, r2 bool, err error) {
	err = d.withStore(ctx, "Job", func(ctx context.Context) error { r0, r1, r2, err = d.i.w.store.Batch(ctx, id); return err })
	return r0, r1, r2, err
}

func (d doorStore) ListBatches(ctx context.Context, id string, status run.BatchStatus, limit int) (r0 []run.Batch, err error) {
	err = d.withStore(ctx, "ListJobs", func(ctx context.Context) error { r0, err = d.i.w.store.ListBatches(ctx, id, status, limit); return err })
	return r0, err
}

func (d doorStore) Items(ctx context.Context, id string, outcomes []run.Outcome, afterKey string, limit int) (r0 []run.ItemOutcome, err error) {
	err = d.withStore(ctx, "Items", func(ctx context.Context) error {
		r0, err = d.i.w.store.Items(ctx, id, outcomes, afterKey, limit)
		return err
	})
	return r0, err
}

func (d doorStore) RequeueBatch(ctx context.Context, id string, a run.Audit) (r0 bool, err error) {
	err = d.withStore(ctx, "RequeueJob", func(ctx context.Context) error { r0, err = d.i.w.store.RequeueBatch(ctx, id, a); return err })
	return r0, err
}

func (d doorStore) DeadLetter(ctx context.Context, id string, attempt int, reason string, stale time.Duration, a run.Audit) (r0 bool, err error) {
	err = d.withStore(ctx, "DeadLetter", func(ctx context.Context) error {
		r0, err = d.i.w.store.DeadLetter(ctx, id, attempt, reason, stale, a)
		return err
	})
	return r0, err
}

func (d doorStore) Write(ctx context.Context, a run.Audit) error {
	return d.withStore(ctx, "Write", func(ctx context.Context) error { return d.i.w.store.Write(ctx, a) })
}

func (d doorStore) Unsent(ctx context.Context, id string, limit int) (r0 []run.Batch, err error) {
	err = d.withStore(ctx, "Unsent", func(ctx context.Context) error { r0, err = d.i.w.store.Unsent(ctx, id, limit); return err })
	return r0, err
}

func (d doorStore) MarkQueued(ctx context.Context, l run.RunLease, jobs []run.Batch) (r0 int, err error) {
	err = d.withStore(ctx, "MarkQueued", func(ctx context.Context) error { r0, err = d.i.w.store.MarkQueued(ctx, l, jobs); return err })
	return r0, err
}

func (d doorStore) MarkUnsent(ctx context.Context, jobs []run.Batch, reason string, counted bool, audit func(run.Batch) run.Audit) (r0 int, r1 int, err error) {
	err = d.withStore(ctx, "MarkUnsent", func(ctx context.Context) error {
		r0, r1, err = d.i.w.store.MarkUnsent(ctx, jobs, reason, counted, audit)
		return err
	})
	return r0, r1, err
}

func (d doorStore) ToSend(ctx context.Context, sys string, limit int) (r0 []run.Batch, err error) {
	err = d.withStore(ctx, "ToSend", func(ctx context.Context) error { r0, err = d.i.w.store.ToSend(ctx, sys, limit); return err })
	return r0, err
}

func (d doorStore) OnTheWay(ctx context.Context, sys string) (r0 run.OnTheWay, err error) {
	err = d.withStore(ctx, "OnTheWay", func(ctx context.Context) error { r0, err = d.i.w.store.OnTheWay(ctx, sys); return err })
	return r0, err
}

func (d doorStore) RequeueSilent(ctx context.Context, sys string, silent time.Duration, limit int) (r0 int, err error) {
	err = d.withStore(ctx, "Silence", func(ctx context.Context) error {
		r0, err = d.i.w.store.RequeueSilent(ctx, sys, silent, limit)
		return err
	})
	return r0, err
}

func (d doorStore) Rescue(ctx context.Context, sys string, stale, released time.Duration, limit int) (r0 int, r1 int, err error) {
	err = d.withStore(ctx, "Bury", func(ctx context.Context) error {
		r0, r1, err = d.i.w.store.Rescue(ctx, sys, stale, released, limit)
		return err
	})
	return r0, r1, err
}

func (d doorStore) OpenRuns(ctx context.Context, sys string, limit int) (r0 []run.Run, err error) {
	err = d.withStore(ctx, "OpenRuns", func(ctx context.Context) error { r0, err = d.i.w.store.OpenRuns(ctx, sys, limit); return err })
	return r0, err
}
