package run

import (
	"cmp"
	"context"
	"encoding/json"
	"slices"
	"time"

	"sqlwriter/internal/commit"
	"sqlwriter/internal/fault"
)

// Workers commits batches: the function BatchWorker. It is safe for concurrent use.
type Workers struct {
	base
	rejecter rejecter
}

// NewWorkers makes a Workers.
func NewWorkers(p Ports, o Options) *Workers {
	b := base{p, o.withDefaults()}
	return &Workers{b, rejecter{b, "batches"}}
}

// Receive claims the batch of a message, commits its documents, and counts their outcomes in the database. An error abandons the
// message. Errors by kind: infrastructure, when the message could not even be deferred; internal, when the batch failed and that is
// recorded.
func (w *Workers) Receive(ctx context.Context, in Incoming) (Handled, error) {
	p, err := ReadPayload(in.Body, BatchMessage)
	if err == nil {
		err = w.checkEnvironment(p)
	}
	if err != nil {
		return w.rejecter.reject(ctx, in, p, err)
	}
	me := w.workerRow("worker", p.BatchID)
	var claimed Claimed
	err = w.withStore(ctx, func(ctx context.Context) (err error) {
		claimed, err = w.p.Store.ClaimBatch(ctx, p.BatchID, p.ticket(), me, w.staleAfter(ctx, workerStale), Audit{
			Code: CodeBatchStart, Level: LevelInfo, By: me.ID, Why: "claimed", Run: p.RunID, Batch: p.BatchID,
			Detail: detail(map[string]any{"deferral": p.Deferral, "delivery_count": in.Count, "attempt": p.BatchAttempt}),
		})
		return err
	})
	if err != nil {
		return w.deferOr(ctx, p, err)
	}
	switch claimed.Answer {
	case Taken:
		if claimed.Batch.LostWorkers >= maxLostOwners {
			return w.failBatch(ctx, p, claimed, fault.New(fault.Internal, "run: worker", "lost_workers",
				"%d workers were lost with this batch, which may be the cause", claimed.Batch.LostWorkers))
		}
		return w.process(ctx, p, claimed)
	case Ended: // no other message may come that ends the run
		w.completeRun(ctx, claimed.Batch.Run)
		return Handled{Did: "skipped", Run: p.RunID, Batch: p.BatchID, Reason: "the run has ended, or is to end"}, nil
	case Busy:
		return w.deferMessage(ctx, w.p.BatchQueue, p, busyWait, "another worker has it")
	case Outdated:
		return Handled{Did: "skipped", Run: p.RunID, Batch: p.BatchID, Reason: "a later message of the batch is on its way"}, nil
	case Unknown:
		return w.rejecter.reject(ctx, in, p, invalidMessage("no_batch", "batch_id: expected a batch in the table job, found none"))
	default:
		return Handled{Did: "skipped", Run: p.RunID, Batch: p.BatchID, Reason: "the batch has ended"}, nil
	}
}

// deferOr defers the message after a transient failure. Another failure abandons it.
func (w *Workers) deferOr(ctx context.Context, p Payload, err error) (Handled, error) {
	if transient(err) {
		return w.deferMessage(ctx, w.p.BatchQueue, p, w.delayFor(err), errorText(err))
	}
	return Handled{Did: "failed", Run: p.RunID, Batch: p.BatchID}, err
}

// process commits a claimed batch and ends it.
func (w *Workers) process(ctx context.Context, p Payload, c Claimed) (Handled, error) {
	begin := w.o.Now()
	beating, stop := w.beat(ctx, c.Lease)
	outcomes, err := w.commit(beating, c)
	stop()
	saved := w.save(ctx, c.Lease, outcomes)
	handled := Handled{Did: "committed", Run: c.Batch.Run, Batch: c.Batch.ID, Counts: outcomes.counts()}
	switch {
	case takenOver(saved) || (saved == nil && takenOver(err)):
		return Handled{Did: "late", Run: c.Batch.Run, Batch: c.Batch.ID, Reason: "another worker took it over"}, nil
	case saved != nil:
		return w.releaseOrFail(ctx, p, c, saved)
	case transient(err) || (err != nil && ctx.Err() != nil):
		return w.releaseBatch(ctx, p, c, err)
	case err != nil:
		return w.failBatch(ctx, p, c, err)
	}
	stats, err := w.finish(ctx, c, begin)
	if takenOver(err) {
		return Handled{Did: "late", Run: c.Batch.Run, Batch: c.Batch.ID, Reason: "another worker took it over"}, nil
	}
	if err != nil {
		return w.releaseOrFail(ctx, p, c, err)
	}
	if !stats.AddsUp {
		handled.Did, handled.Reason = "failed", "not every document has an outcome"
	}
	w.completeRun(ctx, c.Batch.Run)
	return handled, nil
}

// beat starts heartbeats. The context ends when another worker has the batch.
func (w *Workers) beat(ctx context.Context, l BatchLease) (context.Context, func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	stop := w.heartbeat("batch", l.Batch, func() {
		err := w.withStore(ctx, func(ctx context.Context) error {
			_, err := w.p.Store.BeatBatch(ctx, l)
			return err
		})
		if takenOver(err) {
			cancel(err)
		}
	})
	return ctx, func() { stop(); cancel(nil) }
}

// commit writes the batch's documents to SQL. With an error, documents that were finished before it have their outcome. A panic is an
// error, too, so that the batch fails in the store.
func (w *Workers) commit(ctx context.Context, c Claimed) (res *results, err error) {
	res = &results{outcomes: map[string]ItemOutcome{}}
	defer func() {
		if r := recover(); r != nil {
			err = fault.Panic("run: worker", r)
		}
	}()
	kind, err := w.kindOf(c.Run)
	if err != nil {
		return res, err
	}
	for ids := range slices.Chunk(c.Open, BatchSize) {
		raws, err := w.p.Documents.ReadMany(ctx, ids)
		if err != nil {
			return res, leaseError(ctx, err)
		}
		for _, id := range absent(ids, raws) {
			res.add(ItemOutcome{Document: id, Outcome: DocGone})
		}
		if len(raws) == 0 {
			continue
		}
		batch := commit.Batch{
			Documents: raws, Received: w.o.Now(), Purpose: commit.ForRun, BatchID: c.Batch.Run, OnResult: res.record,
			TakeOver: kind.takeOver(c.Run), Rewrite: kind.Rewrite,
		}
		if c.Begun {
			batch.OnResult = res.recordAfterCrash(raws, w.o.Now())
		}
		report, err := w.p.Commit.Run(ctx, batch)
		res.addCost(report)
		if err != nil {
			return res, leaseError(ctx, err)
		}
	}
	return res, nil
}

// leaseError returns the loss of the lease if that ended the context, otherwise err.
func leaseError(ctx context.Context, err error) error {
	if cause := context.Cause(ctx); takenOver(cause) {
		return cause
	}
	return err
}

// absent returns the ids without a document.
func absent(ids []string, raws []json.RawMessage) []string {
	there := make(map[string]bool, len(raws))
	for _, raw := range raws {
		var head struct {
			ID string `json:"id"`
		}
		if json.Unmarshal(raw, &head) == nil {
			there[head.ID] = true
		}
	}
	return slices.DeleteFunc(slices.Clone(ids), func(id string) bool { return there[id] })
}

// save stores the outcomes, whatever stopped the work.
func (w *Workers) save(ctx context.Context, l BatchLease, res *results) error {
	if len(res.outcomes) == 0 {
		return nil
	}
	all := make([]ItemOutcome, 0, len(res.outcomes))
	for _, o := range res.outcomes {
		all = append(all, o)
	}
	slices.SortFunc(all, func(a, b ItemOutcome) int { return cmp.Compare(a.Document, b.Document) })
	slices.SortFunc(res.details, func(a, b ErrorDetail) int { return cmp.Compare(a.Document, b.Document) })
	return w.withStoreDetached(ctx, func(ctx context.Context) error {
		for chunk := range slices.Chunk(all, BatchSize) {
			details := slices.DeleteFunc(slices.Clone(res.details), func(d ErrorDetail) bool {
				return !slices.ContainsFunc(chunk, func(o ItemOutcome) bool { return o.Document == d.Document })
			})
			if err := w.p.Store.SaveOutcomes(ctx, l, chunk, details); err != nil {
				return err
			}
		}
		return nil
	})
}

// withStoreDetached uses the store even when the invocation's time is over.
func (w *Workers) withStoreDetached(ctx context.Context, use func(ctx context.Context) error) error {
	return w.withStoreAlways(context.WithoutCancel(ctx), use)
}

// finish ends the batch by the counts in the database.
func (w *Workers) finish(ctx context.Context, c Claimed, begin time.Time) (stats BatchStats, err error) {
	err = w.withStoreDetached(ctx, func(ctx context.Context) (err error) {
		stats, err = w.p.Store.FinishBatch(ctx, c.Lease, func(s BatchStats) Audit {
			a := Audit{
				Code: CodeBatchDone, Level: LevelInfo, By: c.Lease.Owner, Why: "every document has an outcome", Run: c.Batch.Run, Batch: c.Batch.ID,
				Detail: detail(map[string]any{
					"total": s.Total, "success": s.Success, "failure": s.Failure, "outcomes": s.Outcomes, "took_over": c.TookOver,
					"duration_ms": w.o.Now().Sub(begin).Milliseconds(),
				}),
			}
			if !s.AddsUp {
				a.Code, a.Level, a.Why = CodeBatchFail, LevelError, "not every document has an outcome"
			}
			return a
		})
		return err
	})
	return stats, err
}

// releaseOrFail ends the work on a batch after a failure of the store: for a while when it is transient, otherwise for good.
func (w *Workers) releaseOrFail(ctx context.Context, p Payload, c Claimed, cause error) (Handled, error) {
	if transient(cause) {
		return w.releaseBatch(ctx, p, c, cause)
	}
	return w.failBatch(ctx, p, c, cause)
}

// releaseBatch releases the batch and defers its message with the worker's epoch. The next claim then succeeds at once and counts no
// lost worker, even if the release could not be written. Only the first release of a message is audited.
func (w *Workers) releaseBatch(ctx context.Context, p Payload, c Claimed, cause error) (Handled, error) {
	var audits []Audit
	if p.Deferral == 0 {
		audits = append(audits, Audit{
			Code: CodeBatchReleased, Level: LevelWarn, By: c.Lease.Owner, Why: errorText(cause), Run: c.Batch.Run, Batch: c.Batch.ID,
		})
	}
	err := w.withStoreDetached(ctx, func(ctx context.Context) error { return w.p.Store.ReleaseBatch(ctx, c.Lease, audits...) })
	if takenOver(err) {
		return Handled{Did: "late", Run: c.Batch.Run, Batch: c.Batch.ID, Reason: "another worker took it over"}, nil
	}
	p.Epoch = c.Lease.Epoch
	return w.deferMessage(ctx, w.p.BatchQueue, p, w.delayFor(cause), errorText(cause))
}

// failBatch fails the batch and returns cause to the host. The repeated message finds a failed batch.
func (w *Workers) failBatch(ctx context.Context, p Payload, c Claimed, cause error) (Handled, error) {
	err := w.withStoreDetached(ctx, func(ctx context.Context) error {
		return w.p.Store.FailBatch(ctx, c.Lease, errorText(cause), Audit{
			Code: CodeBatchFail, Level: LevelError, By: c.Lease.Owner, Why: errorText(cause), Run: c.Batch.Run, Batch: c.Batch.ID,
		})
	})
	if takenOver(err) {
		return Handled{Did: "late", Run: c.Batch.Run, Batch: c.Batch.ID, Reason: "another worker took it over"}, nil
	}
	if transient(err) {
		p.Epoch = c.Lease.Epoch
		return w.deferMessage(ctx, w.p.BatchQueue, p, w.delayFor(err), errorText(err))
	}
	w.completeRun(ctx, c.Batch.Run)
	return Handled{Did: "failed", Run: c.Batch.Run, Batch: c.Batch.ID, Reason: errorText(cause)}, cause
}
