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
	"sqlwriter/test/spies"
)

// The doors are the ports of an instance: each use goes through instance.use.
type (
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

// spyStore is the store of an instance, which checks the changes of batches.
type spyStore struct {
	run.Store
	w *world
}

// store is the instance's store.
func (i *instance) store() run.Store {
	return spyStore{spies.RunStore(i.w.store, func(
		ctx context.Context, op, _ string, do func(context.Context) error,
	) error {
		return i.use(ctx, op, true, func() error {
			w := i.w
			w.mu.Lock()
			defer w.mu.Unlock()
			defer w.checkBatches(op)
			if w.frozen {
				ctx = context.WithoutCancel(ctx) // a late request arrives all the same
			}
			return do(ctx)
		})
	}), i.w}
}

func (d spyStore) AddChunk(ctx context.Context, l run.RunLease, c run.Chunk, audits ...run.Audit) error {
	err := d.Store.AddChunk(ctx, l, c, audits...)
	if err == nil {
		d.w.mu.Lock()
		defer d.w.mu.Unlock()
		for _, b := range c.Batches {
			d.w.unsavedIDs -= len(b)
		}
	}
	return err
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
