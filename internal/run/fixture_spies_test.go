package run_test

import (
	"cmp"
	"context"
	"encoding/json"
	"slices"
	"time"

	"sqlwriter/internal/breaker"
	"sqlwriter/internal/commit"
	"sqlwriter/internal/fault"
	"sqlwriter/internal/invoice"
	"sqlwriter/internal/run"
)

// The doors are the ports of an instance: each use goes through instance.use.
type (
	spyStore     struct{ i *instance }
	spyFinder    struct{ i *instance }
	spyDocuments struct{ i *instance }
	spySink      struct{ i *instance }
	spyControl   struct{ i *instance }
	spyEvidence  struct{ i *instance }
	spyQueue     struct {
		i *instance
		b *bus
	}
)

var _ run.Store = spyStore{}

// withStore uses the store and checks the changes of batches.
func (d spyStore) withStore(ctx context.Context, op string, f func(ctx context.Context) error) error {
	return d.i.use(ctx, op, true, func() error {
		w := d.i.w
		w.mu.Lock()
		defer w.mu.Unlock()
		defer w.checkBatches(op)
		if w.frozen {
			ctx = context.WithoutCancel(ctx) // a late request arrives all the same
		}
		return f(ctx)
	})
}

func (d spyStore) AddChunk(ctx context.Context, l run.RunLease, c run.Chunk, audits ...run.Audit) error {
	return d.withStore(ctx, "AddChunk", func(ctx context.Context) error {
		err := d.i.w.store.AddChunk(ctx, l, c, audits...)
		if err == nil {
			for _, b := range c.Batches {
				d.i.w.unsavedIDs -= len(b)
			}
		}
		return err
	})
}

func (d spyFinder) Find(ctx context.Context, q commit.Query, continuation string) (page commit.Page, err error) {
	err = d.i.use(ctx, "Page", false, func() error {
		page, err = d.i.w.docs.Paged(cmp.Or(d.i.w.pages, commit.MaxPage)).Find(ctx, q, continuation)
		d.i.w.mu.Lock()
		defer d.i.w.mu.Unlock()
		d.i.w.unsavedIDs += len(page.Documents)
		d.i.w.maxUnsavedIDs = max(d.i.w.maxUnsavedIDs, d.i.w.unsavedIDs)
		return err
	})
	return page, err
}

func (d spyDocuments) Read(ctx context.Context, id string) (raw json.RawMessage, err error) {
	err = d.i.use(ctx, "Read", false, func() error { raw, err = d.i.w.docs.Read(ctx, id); return err })
	return raw, err
}

func (d spyDocuments) ReadMany(ctx context.Context, ids []string) (raws []json.RawMessage, err error) {
	err = d.i.use(ctx, "ReadMany", false, func() error { raws, err = d.i.w.docs.ReadMany(ctx, ids); return err })
	return raws, err
}

func (d spyDocuments) Record(ctx context.Context, doc invoice.Snapshot, s invoice.State) (next string, err error) {
	err = d.i.use(ctx, "Record", false, func() error { next, err = d.i.w.docs.Record(ctx, doc, s); return err })
	return next, err
}

func (d spySink) Apply(
	ctx context.Context, items []commit.Item, mode commit.Mode, known breaker.Heartbeat,
) (outcomes []commit.DocumentOutcome, err error) {
	err = d.i.use(ctx, "Apply", true, func() error {
		if slices.ContainsFunc(items, func(it commit.Item) bool { return it.DocumentID == d.i.w.breaks }) {
			return fault.New(fault.Infrastructure, "test: sql", "eof", "the connection was cut")
		}
		outcomes, err = d.i.w.sink.Apply(ctx, items, mode, known)
		return err
	})
	return outcomes, err
}

func (d spySink) Heartbeat(ctx context.Context, known breaker.Heartbeat) (row breaker.Heartbeat, err error) {
	err = d.i.use(ctx, "Heartbeat", true, func() error { row, err = d.i.w.sink.Heartbeat(ctx, known); return err })
	return row, err
}

func (d spySink) TakeOver(ctx context.Context, known breaker.Heartbeat) (row breaker.Heartbeat, err error) {
	err = d.i.use(ctx, "TakeOver", true, func() error { row, err = d.i.w.sink.TakeOver(ctx, known); return err })
	return row, err
}

func (d spyControl) Load(ctx context.Context) (c breaker.Control, etag string, err error) {
	err = d.i.use(ctx, "Load", false, func() error { c, etag, err = d.i.w.control.Load(ctx); return err })
	return c, etag, err
}

func (d spyControl) Store(ctx context.Context, c breaker.Control, etag string) (next string, err error) {
	err = d.i.use(ctx, "StoreControl", false, func() error {
		next, err = d.i.w.control.Store(ctx, c, etag)
		return err
	})
	return next, err
}

func (d spyControl) LoadStatuses(ctx context.Context, since time.Time) ([]breaker.Status, error) {
	return d.i.w.control.LoadStatuses(ctx, since)
}

func (d spyControl) StoreStatus(ctx context.Context, s breaker.Status) error {
	return d.i.w.control.StoreStatus(ctx, s)
}

func (d spyEvidence) Keep(ctx context.Context, name string, content []byte) error {
	return d.i.use(ctx, "Keep", false, func() error { return d.i.w.evidence.Keep(ctx, name, content) })
}

func (d spyQueue) Send(ctx context.Context, messages []run.Outgoing) (errs []error) {
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

func (d spyStore) StartRun(ctx context.Context, r run.Run, a run.Audit) error {
	return d.withStore(ctx, "StartRun", func(ctx context.Context) error { return d.i.w.store.StartRun(ctx, r, a) })
}

func (d spyStore) Run(ctx context.Context, id string) (r0 run.Run, r1 bool, err error) {
	err = d.withStore(ctx, "Run", func(ctx context.Context) error {
		r0, r1, err = d.i.w.store.Run(ctx, id)
		return err
	})
	return r0, r1, err
}

func (d spyStore) ListRuns(ctx context.Context, before string, limit int) (r0 []run.Run, err error) {
	err = d.withStore(ctx, "ListRuns", func(ctx context.Context) error {
		r0, err = d.i.w.store.ListRuns(ctx, before, limit)
		return err
	})
	return r0, err
}

func (d spyStore) BatchCounts(ctx context.Context, id string) (r0 map[run.BatchStatus]int, err error) {
	err = d.withStore(ctx, "BatchCounts", func(ctx context.Context) error {
		r0, err = d.i.w.store.BatchCounts(ctx, id)
		return err
	})
	return r0, err
}

func (d spyStore) Stats(ctx context.Context, id string) (r0 run.Stats, err error) {
	err = d.withStore(ctx, "Stats", func(ctx context.Context) error {
		r0, err = d.i.w.store.Stats(ctx, id)
		return err
	})
	return r0, err
}

func (d spyStore) ClaimRun(
	ctx context.Context, id string, epoch, shown int, wk run.Worker, stale time.Duration,
) (r0 run.Run, r1 bool, err error) {
	err = d.withStore(ctx, "ClaimRun", func(ctx context.Context) error {
		r0, r1, err = d.i.w.store.ClaimRun(ctx, id, epoch, shown, wk, stale)
		return err
	})
	return r0, r1, err
}

func (d spyStore) BeatRun(ctx context.Context, l run.RunLease) (r0 bool, err error) {
	err = d.withStore(ctx, "BeatRun", func(ctx context.Context) error {
		r0, err = d.i.w.store.BeatRun(ctx, l)
		return err
	})
	return r0, err
}

func (d spyStore) Known(ctx context.Context, id string, documents []string) (r0 map[string]bool, err error) {
	err = d.withStore(ctx, "Known", func(ctx context.Context) error {
		r0, err = d.i.w.store.Known(ctx, id, documents)
		return err
	})
	return r0, err
}

func (d spyStore) EndHandOff(ctx context.Context, l run.RunLease, a run.Audit) error {
	return d.withStore(ctx, "EndHandOff", func(ctx context.Context) error { return d.i.w.store.EndHandOff(ctx, l, a) })
}

func (d spyStore) ReleaseRun(ctx context.Context, l run.RunLease) error {
	return d.withStore(ctx, "ReleaseRun", func(ctx context.Context) error { return d.i.w.store.ReleaseRun(ctx, l) })
}

func (d spyStore) CompleteRun(
	ctx context.Context, id string, stale time.Duration, audit func(run.RunStatus, run.Stats) run.Audit,
) (r0 bool, err error) {
	err = d.withStore(ctx, "CompleteRun", func(ctx context.Context) error {
		r0, err = d.i.w.store.CompleteRun(ctx, id, stale, audit)
		return err
	})
	return r0, err
}

func (d spyStore) CancelRun(ctx context.Context, id string, a run.Audit) (r0 bool, err error) {
	err = d.withStore(ctx, "CancelRun", func(ctx context.Context) error {
		r0, err = d.i.w.store.CancelRun(ctx, id, a)
		return err
	})
	return r0, err
}

func (d spyStore) FailRun(
	ctx context.Context, id, reason string, stale time.Duration, a run.Audit,
) (r0 bool, err error) {
	err = d.withStore(ctx, "FailRun", func(ctx context.Context) error {
		r0, err = d.i.w.store.FailRun(ctx, id, reason, stale, a)
		return err
	})
	return r0, err
}

func (d spyStore) ResumeRun(ctx context.Context, id string, a run.Audit) (r0 bool, err error) {
	err = d.withStore(ctx, "ResumeRun", func(ctx context.Context) error {
		r0, err = d.i.w.store.ResumeRun(ctx, id, a)
		return err
	})
	return r0, err
}

func (d spyStore) ClaimBatch(
	ctx context.Context, id string, tk run.Ticket, wk run.Worker, stale time.Duration, a run.Audit,
) (r0 run.Claimed, err error) {
	err = d.withStore(ctx, "ClaimBatch", func(ctx context.Context) error {
		r0, err = d.i.w.store.ClaimBatch(ctx, id, tk, wk, stale, a)
		return err
	})
	return r0, err
}

func (d spyStore) BeatBatch(ctx context.Context, l run.BatchLease) (r0 bool, err error) {
	err = d.withStore(ctx, "BeatBatch", func(ctx context.Context) error {
		r0, err = d.i.w.store.BeatBatch(ctx, l)
		return err
	})
	return r0, err
}

func (d spyStore) SaveOutcomes(
	ctx context.Context, l run.BatchLease, outcomes []run.ItemOutcome, details []run.ErrorDetail,
) error {
	return d.withStore(ctx, "SaveOutcomes", func(ctx context.Context) error {
		return d.i.w.store.SaveOutcomes(ctx, l, outcomes, details)
	})
}

func (d spyStore) FinishBatch(
	ctx context.Context, l run.BatchLease, audit func(run.BatchStats) run.Audit,
) (r0 run.BatchStats, err error) {
	err = d.withStore(ctx, "FinishBatch", func(ctx context.Context) error {
		r0, err = d.i.w.store.FinishBatch(ctx, l, audit)
		return err
	})
	return r0, err
}

func (d spyStore) ReleaseBatch(ctx context.Context, l run.BatchLease, audits ...run.Audit) error {
	return d.withStore(ctx, "ReleaseBatch", func(ctx context.Context) error {
		return d.i.w.store.ReleaseBatch(ctx, l, audits...)
	})
}

func (d spyStore) FailBatch(ctx context.Context, l run.BatchLease, reason string, a run.Audit) error {
	return d.withStore(ctx, "FailBatch", func(ctx context.Context) error {
		return d.i.w.store.FailBatch(ctx, l, reason, a)
	})
}

func (d spyStore) Batch(ctx context.Context, id string) (r0 run.Batch, r1 []run.ErrorDetail, r2 bool, err error) {
	err = d.withStore(ctx, "Batch", func(ctx context.Context) error {
		r0, r1, r2, err = d.i.w.store.Batch(ctx, id)
		return err
	})
	return r0, r1, r2, err
}

func (d spyStore) ListBatches(
	ctx context.Context, id string, status run.BatchStatus, after string, limit int,
) (r0 []run.Batch, err error) {
	err = d.withStore(ctx, "ListBatches", func(ctx context.Context) error {
		r0, err = d.i.w.store.ListBatches(ctx, id, status, after, limit)
		return err
	})
	return r0, err
}

func (d spyStore) Items(
	ctx context.Context, id string, outcomes []invoice.Outcome, afterKey string, limit int,
) (r0 []run.ItemOutcome, err error) {
	err = d.withStore(ctx, "Items", func(ctx context.Context) error {
		r0, err = d.i.w.store.Items(ctx, id, outcomes, afterKey, limit)
		return err
	})
	return r0, err
}

func (d spyStore) RequeueBatch(ctx context.Context, id string, a run.Audit) (r0 bool, err error) {
	err = d.withStore(ctx, "RequeueBatch", func(ctx context.Context) error {
		r0, err = d.i.w.store.RequeueBatch(ctx, id, a)
		return err
	})
	return r0, err
}

func (d spyStore) DeadLetter(
	ctx context.Context, id string, attempt int, reason string, stale time.Duration, a run.Audit,
) (r0 bool, err error) {
	err = d.withStore(ctx, "DeadLetter", func(ctx context.Context) error {
		r0, err = d.i.w.store.DeadLetter(ctx, id, attempt, reason, stale, a)
		return err
	})
	return r0, err
}

func (d spyStore) Write(ctx context.Context, a run.Audit) error {
	return d.withStore(ctx, "Write", func(ctx context.Context) error { return d.i.w.store.Write(ctx, a) })
}

func (d spyStore) Unsent(ctx context.Context, id string, limit int) (r0 []run.Batch, err error) {
	err = d.withStore(ctx, "Unsent", func(ctx context.Context) error {
		r0, err = d.i.w.store.Unsent(ctx, id, limit)
		return err
	})
	return r0, err
}

func (d spyStore) MarkQueued(ctx context.Context, l run.RunLease, batches []run.Batch) (r0 int, err error) {
	err = d.withStore(ctx, "MarkQueued", func(ctx context.Context) error {
		r0, err = d.i.w.store.MarkQueued(ctx, l, batches)
		return err
	})
	return r0, err
}

func (d spyStore) MarkUnsent(
	ctx context.Context, batches []run.Batch, reason string, counted bool, audit func(run.Batch) run.Audit,
) (r0 int, r1 int, err error) {
	err = d.withStore(ctx, "MarkUnsent", func(ctx context.Context) error {
		r0, r1, err = d.i.w.store.MarkUnsent(ctx, batches, reason, counted, audit)
		return err
	})
	return r0, r1, err
}

func (d spyStore) ToSend(ctx context.Context, sys string, limit int) (r0 []run.Batch, err error) {
	err = d.withStore(ctx, "ToSend", func(ctx context.Context) error {
		r0, err = d.i.w.store.ToSend(ctx, sys, limit)
		return err
	})
	return r0, err
}

func (d spyStore) OnTheWay(ctx context.Context, sys string) (r0 run.OnTheWay, err error) {
	err = d.withStore(ctx, "OnTheWay", func(ctx context.Context) error {
		r0, err = d.i.w.store.OnTheWay(ctx, sys)
		return err
	})
	return r0, err
}

func (d spyStore) RequeueSilent(ctx context.Context, sys string, silent time.Duration, limit int) (r0 int, err error) {
	err = d.withStore(ctx, "RequeueSilent", func(ctx context.Context) error {
		r0, err = d.i.w.store.RequeueSilent(ctx, sys, silent, limit)
		return err
	})
	return r0, err
}

func (d spyStore) Rescue(
	ctx context.Context, sys string, stale, released time.Duration, limit int,
) (r0 int, r1 int, err error) {
	err = d.withStore(ctx, "Rescue", func(ctx context.Context) error {
		r0, r1, err = d.i.w.store.Rescue(ctx, sys, stale, released, limit)
		return err
	})
	return r0, r1, err
}

func (d spyStore) OpenRuns(ctx context.Context, sys string, limit int) (r0 []run.Run, err error) {
	err = d.withStore(ctx, "OpenRuns", func(ctx context.Context) error {
		r0, err = d.i.w.store.OpenRuns(ctx, sys, limit)
		return err
	})
	return r0, err
}
