package shared

import (
	"cmp"
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"sqlwriter/internal/fault"
	"sqlwriter/internal/invoice"
	"sqlwriter/internal/run"
)

// ClaimBatch implements run.Batches. A finished batch is answered whatever the status of its run.
//
// The run is read first and not locked, so a claim that has a batch never waits for a run. If an operator cancels the
// run in between, the worker learns it from its first heartbeat.
func (s *RunStore) ClaimBatch(
	ctx context.Context, id string, t run.Ticket, w run.Worker, stale time.Duration, a run.Audit,
) (run.Claimed, error) {
	op := s.op("claim batch")
	if err := checkWorker(op, w); err != nil {
		return run.Claimed{}, err
	}
	var c run.Claimed
	err := s.inTx(ctx, op, func(tx *sql.Tx) (err error) {
		var found bool
		if c.Batch, found, err = s.readBatch(ctx, tx, id); err != nil || !found {
			c.Answer = run.Unknown
			return err
		}
		if c.Run, _, err = s.readBrief(ctx, tx, c.Batch.Run); err != nil {
			return err
		}
		if c.Answer = s.answerWithoutOwner(c.Batch, c.Run, t); c.Answer != "" {
			return nil
		}
		before := c.Batch // names the former owner, if the epoch has not changed
		n, err := s.exec(ctx, tx, "batch_claim", sql.Named("batch", id), sql.Named("epoch", int64(before.Epoch)),
			sql.Named("attempt", int64(t.Attempt)), sql.Named("shown", int64(t.Epoch)),
			sql.Named("owner", w.ID), millis("stale", stale))
		if err != nil {
			return err
		}
		if c.Batch, _, err = s.readBatch(ctx, tx, id); err != nil {
			return err
		}
		if n == 0 { // another worker has it or changed it
			c.Answer = cmp.Or(s.answerWithoutOwner(c.Batch, c.Run, t), run.Busy)
			return nil
		}
		c.TookOver, c.Begun = before.Status == run.Processing, !before.StartedAt.IsZero()
		if err := s.endWorker(ctx, tx, before.Owner, formerOwnerStatus(before.Epoch, t.Epoch)); err != nil {
			return err
		}
		if err := s.completeClaim(ctx, tx, &c, w); err != nil || c.Begun && c.Batch.LostWorkers == before.LostWorkers {
			return err
		}
		return s.audit(ctx, tx, a)
	})
	if err != nil {
		return run.Claimed{}, err
	}
	return c, nil
}

// answerWithoutOwner is the answer to a claim that does not depend on the batch's owner; "" if it does.
func (s *RunStore) answerWithoutOwner(j run.Batch, r run.Run, t run.Ticket) run.Answer {
	switch {
	case r.SysName != s.engine.SysName:
		return run.Foreign
	case !j.Status.Open():
		return run.Finished
	case r.Status != run.RunRunning || r.Cancel:
		return run.Ended
	case t.Attempt != j.Attempt:
		return run.Outdated
	default:
		return ""
	}
}

// formerOwnerStatus is the final status of a former owner. It released the lease if its epoch was shown; otherwise it
// is lost.
func formerOwnerStatus(epoch, shown int) run.WorkerStatus {
	if shown == epoch {
		return run.WorkerIdle
	}
	return run.WorkerFailed
}

// completeClaim adds the worker's row and fills the answer of a claim.
func (s *RunStore) completeClaim(ctx context.Context, tx *sql.Tx, c *run.Claimed, w run.Worker) (err error) {
	c.Answer = run.Taken
	c.Lease = run.BatchLease{Batch: c.Batch.ID, Run: c.Batch.Run, Owner: c.Batch.Owner, Epoch: c.Batch.Epoch}
	if c.Open, err = s.readTexts(ctx, tx, "items_open", sql.Named("batch", c.Batch.ID)); err != nil {
		return err
	}
	return s.beginWorker(ctx, tx, kindWorker, w, c.Batch.Run, c.Batch.ID)
}

// batchLeaseArgs are the parameters of parts/batch_leased.sql.
func (s *RunStore) batchLeaseArgs(h run.BatchLease, more ...any) []any {
	return append(more, sql.Named("batch", h.Batch), sql.Named("owner", h.Owner), sql.Named("epoch", int64(h.Epoch)))
}

// BeatBatch implements run.Batches. It reads the run first, because of the order of locks.
func (s *RunStore) BeatBatch(ctx context.Context, h run.BatchLease) (cancel bool, err error) {
	op := s.op("beat batch")
	err = s.inTx(ctx, op, func(tx *sql.Tx) error {
		if cancel, err = s.endRequested(ctx, tx, h.Run); err != nil {
			return err
		}
		n, err := s.exec(ctx, tx, "batch_beat", s.batchLeaseArgs(h)...)
		if err := requireRow(n, err, op, batchLeaseLost); err != nil {
			return err
		}
		return s.beatWorker(ctx, tx, h.Owner)
	})
	return cancel && err == nil, err
}

// SaveOutcomes implements run.Batches. The last outcome of a document counts.
func (s *RunStore) SaveOutcomes(
	ctx context.Context, h run.BatchLease, outcomes []run.ItemOutcome, details []run.ErrorDetail,
) error {
	op := s.op("save outcomes")
	if len(outcomes) > maxRows || len(details) > maxRows {
		return fault.New(fault.Internal, op, fault.CodeBug, "expected at most %d outcomes and details, found %d and %d",
			maxRows, len(outcomes), len(details))
	}
	last := map[string][]any{}
	for _, o := range outcomes {
		if !slices.Contains(invoice.Outcomes(), o.Outcome) {
			return fault.New(fault.Internal, op, fault.CodeBug, "expected an outcome, found %q", o.Outcome)
		}
		key := run.DocumentKey(o.Document)
		last[key] = []any{Hash(key), h.Run, string(o.Outcome), nullIfEmpty(run.Truncate(o.Code, run.MaxBy))}
	}
	items := make([][]any, 0, len(last))
	for _, row := range last {
		items = append(items, row)
	}
	sortByKey(items)
	return s.inTx(ctx, op, func(tx *sql.Tx) error {
		n, err := s.exec(ctx, tx, "batch_lease", s.batchLeaseArgs(h)...)
		if err := requireRow(n, err, op, batchLeaseLost); err != nil {
			return err
		}
		saved, err := s.execRows(ctx, tx, "items_save", items, sql.Named("batch", h.Batch))
		if err != nil {
			return err
		}
		if saved != int64(len(items)) {
			return fault.New(fault.Internal, op, fault.CodeBug, "expected documents of the batch, found %d others",
				int64(len(items))-saved)
		}
		if _, err := s.exec(ctx, tx, "worker_processed", sql.Named("owner", h.Owner),
			sql.Named("documents", int64(len(outcomes)))); err != nil {
			return err
		}
		return s.addDetails(ctx, tx, h, details)
	})
}

func (s *RunStore) addDetails(ctx context.Context, tx *sql.Tx, h run.BatchLease, details []run.ErrorDetail) error {
	list := make([][]any, len(details))
	for i, d := range details {
		list[i] = []any{
			i, d.Document, nullIfZero(d.EntityID), run.Truncate(d.Code, run.MaxBy), run.Truncate(d.Message, run.MaxWhy),
			d.Type, d.RetryCount, boolInt(d.Retryable),
		}
	}
	_, err := s.execRows(ctx, tx, "details_insert", list, s.environment(), sql.Named("run", h.Run),
		sql.Named("batch", h.Batch))
	return err
}

// FinishBatch implements run.Batches. It locks the batch first, so that the outcomes cannot change after they are
// counted.
func (s *RunStore) FinishBatch(
	ctx context.Context, h run.BatchLease, audit func(run.BatchStats) run.Audit,
) (stats run.BatchStats, err error) {
	op := s.op("finish batch")
	err = s.inTx(ctx, op, func(tx *sql.Tx) error {
		n, err := s.exec(ctx, tx, "batch_lease", s.batchLeaseArgs(h)...)
		if err := requireRow(n, err, op, batchLeaseLost); err != nil {
			return err
		}
		if stats, err = s.countOutcomes(ctx, tx, h.Batch); err != nil {
			return err
		}
		outcomes, err := json.Marshal(stats.Outcomes)
		if err != nil {
			return fault.Wrap(fault.Internal, op, fault.CodeBug, "the outcomes cannot be stored", err)
		}
		status, worker, reason := run.Completed, run.WorkerCompleted, ""
		if !stats.AddsUp { // it may be requeued, so its counts are not final
			status, worker, outcomes = run.Failed, run.WorkerFailed, nil
			reason = fmt.Sprintf("%d of %d documents have no outcome",
				stats.Total-stats.Success-stats.Failure, stats.Total)
		}
		n, err = s.exec(ctx, tx, "batch_finish",
			s.batchLeaseArgs(h, sql.Named("status", string(status)), sql.Named("error", reason),
				sql.Named("outcomes", string(outcomes)), sql.Named("success", int64(stats.Success)),
				sql.Named("failure", int64(stats.Failure)))...)
		if err := requireRow(n, err, op, batchLeaseLost); err != nil {
			return err
		}
		if err := s.endWorker(ctx, tx, h.Owner, worker); err != nil {
			return err
		}
		return s.audit(ctx, tx, audit(stats))
	})
	if err != nil {
		return run.BatchStats{}, err
	}
	return stats, nil
}

func (s *RunStore) countOutcomes(ctx context.Context, tx *sql.Tx, id string) (run.BatchStats, error) {
	j, _, err := s.readBatch(ctx, tx, id)
	if err != nil {
		return run.BatchStats{}, err
	}
	found, err := counts[invoice.Outcome](ctx, s, tx, "items_count", sql.Named("batch", id))
	if err != nil {
		return run.BatchStats{}, err
	}
	delete(found, "") // documents without an outcome
	stats := run.BatchStats{Total: j.Total, Outcomes: found}
	for o, n := range found {
		if o.Success() {
			stats.Success += n
		} else {
			stats.Failure += n
		}
	}
	stats.AddsUp = stats.Success+stats.Failure == stats.Total
	return stats, nil
}

// ReleaseBatch implements run.Batches.
func (s *RunStore) ReleaseBatch(ctx context.Context, h run.BatchLease, audits ...run.Audit) error {
	return s.endBatchLease(ctx, s.op("release batch"), h, run.WorkerIdle, audits, func(tx *sql.Tx) (int64, error) {
		return s.exec(ctx, tx, "batch_release", s.batchLeaseArgs(h)...)
	})
}

// FailBatch implements run.Batches.
func (s *RunStore) FailBatch(ctx context.Context, h run.BatchLease, reason string, a run.Audit) error {
	return s.endBatchLease(ctx, s.op("fail batch"), h, run.WorkerFailed, []run.Audit{a},
		func(tx *sql.Tx) (int64, error) {
			n, err := s.exec(ctx, tx, "batch_fail",
				s.batchLeaseArgs(h, sql.Named("reason", run.Truncate(reason, run.MaxWhy)))...)
			if err != nil || n == 0 {
				return 0, err
			}
			return n, s.saveCounts(ctx, tx, h.Batch)
		})
}

// saveCounts counts the outcomes of batches that failed in the same transaction; no worker adds outcomes after that.
// One statement for both would read the documents before it locks the batches.
func (s *RunStore) saveCounts(ctx context.Context, tx *sql.Tx, ids ...string) error {
	_, err := s.execRows(ctx, tx, "batches_count", keyRows(ids))
	return err
}

// endBatchLease ends a worker's lease of a batch.
func (s *RunStore) endBatchLease(
	ctx context.Context, op string, h run.BatchLease, status run.WorkerStatus, audits []run.Audit,
	f func(tx *sql.Tx) (int64, error),
) error {
	return s.inTx(ctx, op, func(tx *sql.Tx) error {
		n, err := f(tx)
		if err := requireRow(n, err, op, batchLeaseLost); err != nil {
			return err
		}
		if err := s.endWorker(ctx, tx, h.Owner, status); err != nil {
			return err
		}
		return s.audit(ctx, tx, audits...)
	})
}

// Batch implements run.Batches.
func (s *RunStore) Batch(ctx context.Context, id string) (run.Batch, []run.ErrorDetail, bool, error) {
	op := s.op("read batch")
	j, found, err := s.readBatch(ctx, s.engine.Read, id)
	if err != nil || !found {
		return run.Batch{}, nil, false, s.engine.Classify(op, err)
	}
	details := []run.ErrorDetail{}
	err = s.page(ctx, op, "batch_details", maxRows, func(rows *sql.Rows) error {
		var d run.ErrorDetail
		var at moment
		if err := rows.Scan(&d.Document, &d.EntityID, &d.Code, &d.Message, &d.Type, &d.RetryCount,
			&d.Retryable, &at); err != nil {
			return err
		}
		d.At = at.Time
		details = append(details, d)
		return nil
	}, sql.Named("batch", id))
	if err != nil {
		return run.Batch{}, nil, false, err
	}
	return j, details, true, nil
}

// ListBatches implements run.Batches.
func (s *RunStore) ListBatches(
	ctx context.Context, id string, status run.BatchStatus, after string, limit int,
) ([]run.Batch, error) {
	op, byRun, byStatus := s.op("list batches"), sql.Named("run", id), sql.Named("status", string(status))
	behind := sql.Named("after", after)
	switch {
	case id == "" && status == "":
		return s.readBatches(ctx, op, stBatches, limit, behind)
	case id == "":
		return s.readBatches(ctx, op, stBatchesByStatus, limit, byStatus, behind)
	case status == "":
		return s.readBatches(ctx, op, stBatchesOfRun, limit, byRun, behind)
	default:
		return s.readBatches(ctx, op, stBatchesOfRunByStatus, limit, byRun, byStatus, behind)
	}
}

// Items implements run.Batches.
func (s *RunStore) Items(
	ctx context.Context, id string, outcomes []invoice.Outcome, afterKey string, limit int,
) ([]run.ItemOutcome, error) {
	list := []run.ItemOutcome{}
	name, args := stItems, []any{sql.Named("run", id), HashArg("after_key", afterKey)}
	if len(outcomes) > 0 {
		wanted := make([][]any, len(outcomes))
		for i, o := range outcomes {
			wanted[i] = []any{string(o)}
		}
		rows, err := rowsArgs(wanted)
		if err != nil {
			return nil, err
		}
		name, args = stItemsByOutcome, append(args, rows...)
	}
	err := s.page(ctx, s.op("read items"), name, limit, func(rows *sql.Rows) error {
		var it run.ItemOutcome
		var outcome, code sql.NullString
		if err := rows.Scan(&it.Document, &outcome, &code, &it.Number); err != nil {
			return err
		}
		it.Outcome, it.Code = invoice.Outcome(outcome.String), code.String
		list = append(list, it)
		return nil
	}, args...)
	if err != nil {
		return nil, err
	}
	return list, nil
}

// RequeueBatch implements run.Batches. It locks the run's row first, so that the run cannot end meanwhile.
func (s *RunStore) RequeueBatch(ctx context.Context, id string, a run.Audit) (bool, error) {
	return s.changeAudited(ctx, s.op("requeue batch"), a, func(tx *sql.Tx) (int64, error) {
		before, found, err := s.readBatch(ctx, tx, id)
		if err != nil || !found {
			return 0, err
		}
		n, err := s.exec(ctx, tx, stRunLeaseEnded, sql.Named("run", before.Run))
		if err != nil || n == 0 {
			return 0, err
		}
		if n, err = s.exec(ctx, tx, "batch_requeue", sql.Named("batch", id)); err != nil || n == 0 {
			return 0, err
		}
		_, err = s.exec(ctx, tx, "run_again", sql.Named("run", before.Run))
		return n, err
	})
}

// DeadLetter implements run.Batches.
func (s *RunStore) DeadLetter(
	ctx context.Context, id string, attempt int, reason string, stale time.Duration, a run.Audit,
) (bool, error) {
	return s.changeAudited(ctx, s.op("dead letter"), a, func(tx *sql.Tx) (int64, error) {
		before, found, err := s.readBatch(ctx, tx, id)
		if err != nil || !found {
			return 0, err
		}
		of, _, err := s.readBrief(ctx, tx, before.Run)
		if err != nil || of.Status == run.RunPurged || of.SysName != s.engine.SysName {
			return 0, err
		}
		n, err := s.exec(ctx, tx, "batch_dead", sql.Named("batch", id), sql.Named("epoch", int64(before.Epoch)),
			sql.Named("attempt", int64(attempt)),
			sql.Named("reason", run.Truncate(reason, run.MaxWhy)), millis("stale", stale))
		if err != nil || n == 0 {
			return 0, err
		}
		if err := s.saveCounts(ctx, tx, id); err != nil {
			return 0, err
		}
		return n, s.endWorker(ctx, tx, before.Owner, run.WorkerFailed)
	})
}
