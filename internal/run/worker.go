package run

import (
	"cmp"
	"context"
	"encoding/json"
	"slices"
	"time"

	"sqlwriter/internal/commit"
	"sqlwriter/internal/events"
	"sqlwriter/internal/fault"
	"sqlwriter/internal/invoice"
)

// Workers commits batches: the function BatchWorker. It is safe for concurrent use.
type Workers struct {
	worker
	rejecter rejecter
}

// NewWorkers makes a Workers.
func NewWorkers(p Ports, o Options) *Workers {
	b := base{p, o.withDefaults()}
	return &Workers{worker{b}, rejecter{b, "batches"}}
}

// Receive claims the batch of a message, commits its documents, and counts their outcomes in the database. An error
// abandons the message. Errors by kind: infrastructure, when the message could not even be deferred; internal, when the
// batch failed and that is recorded.
func (w *Workers) Receive(ctx context.Context, in Incoming) (Handled, error) {
	p, err := ReadPayload(in.Body, BatchMessage)
	if err == nil {
		err = w.checkEnvironment(p)
	}
	if err != nil {
		return w.rejecter.reject(ctx, in, p, err)
	}
	ctx = events.With(ctx, events.Fields{Run: p.RunID, Batch: p.BatchID})
	claimed, err := w.claim(ctx, p.RunID, p.BatchID, p.ticket(),
		map[string]any{"deferral": p.Deferral, "delivery_count": in.Count, "attempt": p.BatchAttempt})
	if err != nil {
		return w.deferOr(ctx, w.p.BatchQueue, p, err)
	}
	switch claimed.Answer {
	case Taken:
		done, released, err := w.process(ctx, claimed, p.Deferral == 0)
		// the next claim shows the epoch: it succeeds at once and counts no lost worker, even if the release was not
		// written
		if released != nil {
			p.Epoch = claimed.Lease.Epoch
			return w.deferMessage(ctx, w.p.BatchQueue, p, w.delayFor(released), errorText(released))
		}
		return done, err
	case Ended: // no other message may come that ends the run
		w.completeRun(ctx, claimed.Batch.Run)
		return Handled{Did: "skipped", Run: p.RunID, Batch: p.BatchID, Reason: "the run has ended, or is to end"}, nil
	case Busy:
		return w.deferMessage(ctx, w.p.BatchQueue, p, busyWait, "another worker has it")
	case Outdated:
		return Handled{
			Did: "skipped", Run: p.RunID, Batch: p.BatchID, Reason: "the message is not of the batch's attempt",
		}, nil
	case Foreign:
		return w.rejecter.reject(ctx, in, p,
			invalidMessage(codeEnvironment, "batch_id: expected a batch of %q, found one of %q", w.o.SysName,
				fault.Truncate(claimed.Run.SysName, fault.MaxForeign)))
	case Unknown:
		return w.rejecter.reject(ctx, in, p,
			invalidMessage("no_batch", "batch_id: expected a batch in the table batch, found none"))
	default:
		return Handled{Did: "skipped", Run: p.RunID, Batch: p.BatchID, Reason: "the batch has ended"}, nil
	}
}

// worker commits one batch, whatever brought it there: a message (Workers) or the process that executes its run
// (Executor).
type worker struct{ base }

// claim claims a batch for this process.
func (w worker) claim(ctx context.Context, run, batch string, t Ticket, about map[string]any) (c Claimed, err error) {
	me := w.workerRow("worker", batch)
	err = w.withStore(ctx, func(ctx context.Context) (err error) {
		c, err = w.p.Store.ClaimBatch(ctx, batch, t, me, w.staleAfter(ctx, workerStale), Audit{
			Action: CodeBatchStart, Level: LevelInfo, By: me.ID, Why: "claimed", Run: run,
			Batch: batch, Detail: detail(about),
		})
		return err
	})
	return c, err
}

// process commits a claimed batch and ends it, or releases it because of a transient failure (released). err is the
// failure of the batch. Only its first release is audited.
func (w worker) process(ctx context.Context, c Claimed, first bool) (done Handled, released, err error) {
	if c.Batch.LostWorkers >= maxLostOwners {
		return w.failBatch(ctx, c, fault.New(fault.Internal, "run: worker", "lost_workers",
			"%d workers were lost with this batch, which may be the cause", c.Batch.LostWorkers))
	}
	begin := w.o.Now()
	beating, stop := w.beat(ctx, c.Lease)
	outcomes, err := w.commit(beating, c)
	stop()
	saved := w.save(ctx, c.Lease, outcomes)
	done = Handled{Did: "committed", Run: c.Batch.Run, Batch: c.Batch.ID, Counts: outcomes.counts()}
	switch {
	case takenOver(saved) || (saved == nil && takenOver(err)):
		return late(c), nil, nil
	case saved != nil:
		return w.releaseOrFail(ctx, c, saved, first)
	case err != nil && ctx.Err() != nil:
		return w.releaseBatch(ctx, c, err, first)
	case err != nil:
		return w.releaseOrFail(ctx, c, err, first)
	}
	stats, err := w.finish(ctx, c, begin)
	if takenOver(err) {
		return late(c), nil, nil
	}
	if err != nil {
		return w.releaseOrFail(ctx, c, err, first)
	}
	if !stats.AddsUp {
		done.Did, done.Reason = "failed", "not every document has an outcome"
	}
	w.completeRun(ctx, c.Batch.Run)
	return done, nil, nil
}

func late(c Claimed) Handled {
	return Handled{Did: "late", Run: c.Batch.Run, Batch: c.Batch.ID, Reason: "another worker took it over"}
}

// beat starts heartbeats. The context ends when another worker has the batch.
func (w worker) beat(ctx context.Context, l BatchLease) (context.Context, func()) {
	return w.heartbeat(ctx, func(ctx context.Context) error {
		_, err := w.p.Store.BeatBatch(ctx, l)
		return err
	})
}

// commit writes the batch's documents to SQL. With an error, documents that were finished before it have their outcome.
// A panic is an error, too, so that the batch fails in the store.
func (w worker) commit(ctx context.Context, c Claimed) (res *results, err error) {
	res = &results{outcomes: map[string]ItemOutcome{}}
	defer func() {
		if r := recover(); r != nil {
			err = w.log(ctx).Panic("run: worker", events.Fields{}, r)
		}
	}()
	kind, err := w.kindOf(c.Run)
	if err != nil {
		return res, err
	}
	var filter Filter
	// a claim leaves the filter out
	if named := c.Run.Named > 0; kind.Rewrite || (!named && len(kind.TakeOverNamed) > 0) {
		if filter, err = w.filterOf(ctx, c.Batch.Run); err != nil {
			return res, leaseError(ctx, err)
		}
	}
	for ids := range slices.Chunk(c.Open, BatchSize) {
		raws, err := w.p.Documents.ReadMany(ctx, ids)
		if err != nil {
			return res, leaseError(ctx, err)
		}
		for _, id := range absent(ids, raws) {
			res.add(ItemOutcome{Document: id, Outcome: invoice.OutcomeGone})
		}
		if len(raws) == 0 {
			continue
		}
		batch := commit.Delivery{
			Documents: raws, Received: w.o.Now(), Purpose: commit.ForRun, RunID: c.Batch.Run, OnResult: res.record,
			RetryCount: c.Lease.Epoch - 1,
			TakeOver:   kind.takeOver(c.Run.Named > 0, filter.Statuses), Rewrite: kind.Rewrite,
			Overwrite: filter.OverwriteEdits, NotComparable: filter.NotComparable, Releases: filter.Releases,
		}
		if c.Begun {
			batch.OnResult = res.recordAfterCrash(raws, w.o)
		}
		report, err := w.p.Commit.Run(ctx, batch)
		res.addCost(report)
		if err != nil {
			return res, leaseError(ctx, err)
		}
	}
	return res, nil
}

func (w worker) filterOf(ctx context.Context, id string) (f Filter, err error) {
	row, _, err := w.row(ctx, id)
	if err != nil {
		return f, err
	}
	return row.filter()
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
func (w worker) save(ctx context.Context, l BatchLease, res *results) error {
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
func (w worker) withStoreDetached(ctx context.Context, use func(ctx context.Context) error) error {
	return w.withStoreAlways(context.WithoutCancel(ctx), use)
}

// finish ends the batch by the counts in the database.
func (w worker) finish(ctx context.Context, c Claimed, begin time.Time) (stats BatchStats, err error) {
	err = w.withStoreDetached(ctx, func(ctx context.Context) (err error) {
		stats, err = w.p.Store.FinishBatch(ctx, c.Lease, func(s BatchStats) Audit {
			a := Audit{
				Action: CodeBatchDone, Level: LevelInfo, By: c.Lease.Owner, Why: "every document has an outcome",
				Run: c.Batch.Run, Batch: c.Batch.ID,
				Detail: detail(map[string]any{
					"total": s.Total, "success": s.Success, "failure": s.Failure, "outcomes": s.Outcomes,
					"took_over":   c.TookOver,
					"duration_ms": w.o.Now().Sub(begin).Milliseconds(),
				}),
			}
			if !s.AddsUp {
				a.Action, a.Level, a.Why = CodeBatchFail, LevelError, "not every document has an outcome"
			}
			return a
		})
		return err
	})
	return stats, err
}

// releaseOrFail ends the work on a batch after a failure: for a while when it is transient, otherwise for good.
func (w worker) releaseOrFail(
	ctx context.Context, c Claimed, cause error, first bool,
) (done Handled, released, err error) {
	if transient(cause) {
		return w.releaseBatch(ctx, c, cause, first)
	}
	return w.failBatch(ctx, c, cause)
}

// releaseBatch releases the batch because of cause.
func (w worker) releaseBatch(
	ctx context.Context, c Claimed, cause error, first bool,
) (done Handled, released, err error) {
	var audits []Audit
	if first {
		audits = append(audits, Audit{
			Action: CodeBatchReleased, Level: LevelWarn, By: c.Lease.Owner, Why: errorText(cause),
			Run: c.Batch.Run, Batch: c.Batch.ID,
		})
	}
	err = w.withStoreDetached(ctx, func(ctx context.Context) error {
		return w.p.Store.ReleaseBatch(ctx, c.Lease, audits...)
	})
	if takenOver(err) {
		return late(c), nil, nil
	}
	return Handled{}, cause, nil
}

// failBatch fails the batch and returns cause. A later message finds a failed batch.
func (w worker) failBatch(ctx context.Context, c Claimed, cause error) (done Handled, released, err error) {
	err = w.withStoreDetached(ctx, func(ctx context.Context) error {
		return w.p.Store.FailBatch(ctx, c.Lease, errorText(cause), Audit{
			Action: CodeBatchFail, Level: LevelError, By: c.Lease.Owner, Why: errorText(cause),
			Run: c.Batch.Run, Batch: c.Batch.ID,
		})
	})
	if takenOver(err) {
		return late(c), nil, nil
	}
	if transient(err) {
		return Handled{}, err, nil
	}
	w.completeRun(ctx, c.Batch.Run)
	return Handled{Did: "failed", Run: c.Batch.Run, Batch: c.Batch.ID, Reason: errorText(cause)}, nil, cause
}
