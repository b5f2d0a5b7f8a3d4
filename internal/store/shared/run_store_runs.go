package shared

import (
	"context"
	"database/sql"
	"maps"
	"slices"
	"strings"
	"time"

	"sqlwriter/internal/fault"
	"sqlwriter/internal/run"
)

// StartRun implements run.Runs.
func (s *RunStore) StartRun(ctx context.Context, r run.Run, a run.Audit) error {
	op := s.op("start run")
	r, err := r.Normalize()
	if err != nil {
		return err
	}
	err = s.inTx(ctx, op, func(tx *sql.Tx) error {
		_, err := s.exec(ctx, tx, "run_start", sql.Named("run", r.ID), sql.Named("sys_name", r.SysName),
			sql.Named("kind", string(r.Kind)),
			sql.Named("filter", string(r.Filter)), sql.Named("rate", int64(r.Rate)),
			sql.Named("bound", int64(r.Limit)), sql.Named("matched", int64(r.Matched)),
			sql.Named("at_least", boolInt(r.AtLeast)),
			sql.Named("named", int64(run.Named(r.Filter))), sql.Named("by", r.RequestedBy), sql.Named("why", r.Why))
		if err != nil {
			return err
		}
		return s.audit(ctx, tx, a)
	})
	if fault.Has(err, fault.OwnWhenAlone) { // the run's id is the only key from the caller
		return fault.New(fault.Internal, op, "run_exists", "there is a run %s already", r.ID)
	}
	return err
}

// Run implements run.Runs.
func (s *RunStore) Run(ctx context.Context, id string) (run.Run, bool, error) {
	r, found, err := s.readRun(ctx, s.engine.Read, id)
	return r, found, s.engine.Classify(s.op("read run"), err)
}

// ListRuns implements run.Runs.
func (s *RunStore) ListRuns(ctx context.Context, before string, limit int) ([]run.Run, error) {
	list := []run.Run{}
	err := s.page(ctx, s.op("list runs"), "run_latest", limit, func(rows *sql.Rows) error {
		var filter sql.NullString
		r, err := scanRun(rows, &filter)
		r.Filter = rawOf(filter)
		list = append(list, r)
		return err
	}, s.environment(), sql.Named("before_run", before))
	if err != nil {
		return nil, err
	}
	return list, nil
}

// Stats implements run.Runs. An unknown run has empty stats.
func (s *RunStore) Stats(ctx context.Context, id string) (run.Stats, error) {
	stats, err := s.readStats(ctx, s.engine.Read, id)
	return stats, s.engine.Classify(s.op("run stats"), err)
}

// BatchCounts implements run.Runs.
func (s *RunStore) BatchCounts(ctx context.Context, id string) (map[run.BatchStatus]int, error) {
	found, err := counts[run.BatchStatus](ctx, s, s.engine.Read, "run_batches", sql.Named("run", id))
	return found, s.engine.Classify(s.op("count batches"), err)
}

// ClaimRun implements run.Runs.
func (s *RunStore) ClaimRun(
	ctx context.Context, id string, epoch, shown int, w run.Worker, stale time.Duration,
) (r run.Run, claimed bool, err error) {
	op := s.op("claim run")
	if err := checkWorker(op, w); err != nil {
		return run.Run{}, false, err
	}
	err = s.inTx(ctx, op, func(tx *sql.Tx) error {
		before, _, err := s.readBrief(ctx, tx, id) // names the former owner, if the epoch has not changed
		if err != nil {
			return err
		}
		n, err := s.exec(ctx, tx, "run_claim", sql.Named("run", id), sql.Named("epoch", int64(epoch)),
			sql.Named("owner", w.ID),
			sql.Named("shown", int64(shown)), millis("stale", stale))
		if err != nil || n == 0 {
			return err
		}
		if err := s.endWorker(ctx, tx, before.Owner, formerOwnerStatus(epoch, shown)); err != nil {
			return err
		}
		if err := s.beginWorker(ctx, tx, kindManager, w, id, ""); err != nil {
			return err
		}
		r, claimed, err = s.readRun(ctx, tx, id)
		return err
	})
	if err != nil || !claimed {
		return run.Run{}, false, err
	}
	return r, true, nil
}

// runLeaseArgs are the parameters of parts/run_leased.sql.
func runLeaseArgs(l run.RunLease, more ...any) []any {
	return append(more, sql.Named("run", l.Run), sql.Named("owner", l.Owner), sql.Named("epoch", int64(l.Epoch)))
}

// BeatRun implements run.Runs.
func (s *RunStore) BeatRun(ctx context.Context, l run.RunLease) (cancel bool, err error) {
	op := s.op("beat run")
	err = s.inTx(ctx, op, func(tx *sql.Tx) error {
		n, err := s.exec(ctx, tx, "run_beat", runLeaseArgs(l)...)
		if err := requireRow(n, err, op, runLeaseLost); err != nil {
			return err
		}
		if err := s.beatWorker(ctx, tx, l.Owner); err != nil {
			return err
		}
		cancel, err = s.endRequested(ctx, tx, l.Run)
		return err
	})
	return cancel && err == nil, err
}

// Known implements run.Runs.
func (s *RunStore) Known(ctx context.Context, id string, documents []string) (map[string]bool, error) {
	op := s.op("known documents")
	byKey := make(map[string]string, len(documents))
	list := make([][]any, len(documents))
	for i, d := range documents {
		key := run.DocumentKey(d)
		byKey[key], list[i] = d, []any{Hash(key)}
	}
	known := map[string]bool{}
	for part := range slices.Chunk(list, maxKnownPage) {
		rows, err := rowsArgs(part)
		if err != nil {
			return nil, err
		}
		err = s.each(ctx, s.engine.Read, "items_known", func(rows *sql.Rows) error {
			var key Hash
			err := rows.Scan(&key)
			known[byKey[string(key)]] = true
			return err
		}, append(rows, sql.Named("run", id))...)
		if err != nil {
			return nil, s.engine.Classify(op, err)
		}
	}
	return known, nil
}

// maxKnownPage is the most documents of one query.
const maxKnownPage = 1000

// AddChunk implements run.Runs.
func (s *RunStore) AddChunk(ctx context.Context, l run.RunLease, c run.Chunk, audits ...run.Audit) error {
	op := s.op("add chunk")
	if err := checkChunk(op, c); err != nil {
		return err
	}
	return s.inTx(ctx, op, func(tx *sql.Tx) error {
		documents := 0
		for _, b := range c.Batches {
			documents += len(b)
		}
		n, err := s.exec(ctx, tx, "run_add",
			runLeaseArgs(l, sql.Named("first", int64(c.First)), sql.Named("batches", int64(len(c.Batches))),
				sql.Named("documents", int64(documents)), sql.Named("watermark", c.Watermark),
				millis("wait", c.Wait))...)
		if err := requireRow(n, err, op,
			"this manager no longer has the run, the run is asked to end, or it has other batches"); err != nil {
			return err
		}
		if err := s.addBatches(ctx, tx, op, l.Run, c); err != nil {
			return err
		}
		if err := s.beatWorker(ctx, tx, l.Owner); err != nil {
			return err
		}
		return s.audit(ctx, tx, audits...)
	})
}

// checkChunk refuses an invalid chunk.
func checkChunk(op string, c run.Chunk) error {
	seen := map[string]bool{}
	for _, documents := range c.Batches {
		if len(documents) == 0 || len(documents) > maxRows {
			return fault.New(fault.Internal, op, fault.CodeBug, "expected 1 to %d documents in a batch, found %d",
				maxRows, len(documents))
		}
		for _, d := range documents {
			if seen[d] {
				return knownDocumentErr(op)
			}
			seen[d] = true
		}
	}
	return nil
}

func knownDocumentErr(op string) error {
	return fault.New(fault.Internal, op, fault.CodeBug, "the run has a document of the chunk already")
}

// addBatches adds the batches of a chunk with their documents.
func (s *RunStore) addBatches(ctx context.Context, tx *sql.Tx, op, id string, c run.Chunk) error {
	r, _, err := s.readBrief(ctx, tx, id)
	if err != nil {
		return err
	}
	var batches, items [][]any
	for i, documents := range c.Batches {
		batch := run.BatchID(r.SysName, id, c.First+i)
		batches = append(batches, []any{batch, c.First + i, len(documents)})
		for position, d := range documents {
			items = append(items, []any{Hash(run.DocumentKey(d)), d, batch, position})
		}
	}
	_, err = s.execRows(ctx, tx, "batches_insert", batches, sql.Named("run", id),
		sql.Named("attempt", int64(run.FirstAttempt)))
	if err != nil {
		return err
	}
	sortByKey(items)
	_, err = s.execRows(ctx, tx, "items_insert", items, sql.Named("run", id))
	if err = s.engine.Classify(op, err); fault.Has(err, fault.OwnWhenAlone) {
		return knownDocumentErr(op)
	}
	return err
}

// sortByKey sorts rows by their first column, the order in which all transactions lock rows.
func sortByKey(list [][]any) {
	text := func(row []any) string {
		if h, ok := row[0].(Hash); ok {
			return string(h)
		}
		return row[0].(string)
	}
	slices.SortFunc(list, func(a, b []any) int { return strings.Compare(text(a), text(b)) })
}

// keyRows makes sorted rows of one column.
func keyRows(ids []string) [][]any {
	list := make([][]any, len(ids))
	for i, id := range ids {
		list[i] = []any{id}
	}
	sortByKey(list)
	return list
}

// EndHandOff implements run.Runs.
func (s *RunStore) EndHandOff(ctx context.Context, l run.RunLease, a run.Audit) error {
	return s.endRunLease(ctx, s.op("end hand-off"), l, true, run.WorkerCompleted, a)
}

// ReleaseRun implements run.Runs.
func (s *RunStore) ReleaseRun(ctx context.Context, l run.RunLease) error {
	return s.endRunLease(ctx, s.op("release run"), l, false, run.WorkerIdle)
}

// endRunLease ends a manager's lease of a run. A true handedOff ends the hand-off too.
func (s *RunStore) endRunLease(
	ctx context.Context, op string, l run.RunLease, handedOff bool, status run.WorkerStatus, audits ...run.Audit,
) error {
	return s.inTx(ctx, op, func(tx *sql.Tx) error {
		n, err := s.exec(ctx, tx, "run_release", runLeaseArgs(l, sql.Named("ended", boolInt(handedOff)))...)
		if err := requireRow(n, err, op, runLeaseLost); err != nil {
			return err
		}
		if err := s.endWorker(ctx, tx, l.Owner, status); err != nil {
			return err
		}
		return s.audit(ctx, tx, audits...)
	})
}

// boolInt is a boolean in the form that all engines take.
func boolInt(yes bool) int64 {
	if yes {
		return 1
	}
	return 0
}

// CompleteRun implements run.Runs. A run that is handed off and has no open batch counts as completed, even if it was
// asked to end.
//
// The transaction locks the run's row first. Adding or requeueing a batch needs the same lock.
func (s *RunStore) CompleteRun(
	ctx context.Context, id string, stale time.Duration, audit func(run.RunStatus, run.Stats) run.Audit,
) (ended bool, err error) {
	err = s.inTx(ctx, s.op("complete run"), func(tx *sql.Tx) error {
		n, err := s.exec(ctx, tx, stRunLease, sql.Named("run", id))
		if err != nil || n == 0 {
			return err
		}
		status, err := s.endIfDue(ctx, tx, id, stale)
		if err != nil || status == "" {
			return err
		}
		stats, err := s.readStats(ctx, tx, id)
		if err != nil {
			return err
		}
		if status == run.RunCompleted && stats.Failed() {
			status = run.RunCompletedWithFailures
			if _, err := s.exec(ctx, tx, "run_with_failures", sql.Named("run", id)); err != nil {
				return err
			}
		}
		if err := s.endWorkers(ctx, tx, id, status); err != nil {
			return err
		}
		ended = true
		return s.audit(ctx, tx, audit(status, stats))
	})
	return ended && err == nil, err
}

// endIfDue ends a run whose work is done or cancelled, and returns the status. It returns completed for a run with
// failures too, and "" for a run that goes on.
func (s *RunStore) endIfDue(ctx context.Context, tx *sql.Tx, id string, stale time.Duration) (run.RunStatus, error) {
	n, err := s.exec(ctx, tx, "run_complete", sql.Named("run", id))
	if err != nil || n > 0 {
		return run.RunCompleted, err
	}
	if n, err = s.exec(ctx, tx, "run_cancelled", sql.Named("run", id), millis("stale", stale)); err != nil || n == 0 {
		return "", err
	}
	open, err := s.readTexts(ctx, tx, "batches_open", sql.Named("run", id))
	if err != nil {
		return "", err
	}
	if _, err := s.execRows(ctx, tx, "batches_cancel", keyRows(open),
		sql.Named("cancelled", run.CancelledError)); err != nil {
		return "", err
	}
	cut, err := s.readTexts(ctx, tx, "batches_cut", sql.Named("run", id), sql.Named("cancelled", run.CancelledError))
	if err != nil {
		return "", err
	}
	return run.RunCancelled, s.saveCounts(ctx, tx, cut...)
}

// endWorkers ends the running workers of a run that ended. Its manager completed. A worker that still has a batch of
// a cancelled run is dead.
func (s *RunStore) endWorkers(ctx context.Context, tx *sql.Tx, id string, status run.RunStatus) error {
	ends := map[string]run.WorkerStatus{}
	err := s.each(ctx, tx, "workers_of_run", func(rows *sql.Rows) error {
		var worker, kind string
		if err := rows.Scan(&worker, &kind); err != nil {
			return err
		}
		switch {
		case kind == kindManager:
			ends[worker] = run.WorkerCompleted
		case status == run.RunCancelled:
			ends[worker] = run.WorkerFailed
		}
		return nil
	}, sql.Named("run", id))
	if err != nil {
		return err
	}
	for _, worker := range slices.Sorted(maps.Keys(ends)) {
		if err := s.endWorker(ctx, tx, worker, ends[worker]); err != nil {
			return err
		}
	}
	return nil
}

// CancelRun implements run.Runs.
func (s *RunStore) CancelRun(ctx context.Context, id string, a run.Audit) (bool, error) {
	return s.changeAudited(ctx, s.op("cancel run"), a, func(tx *sql.Tx) (int64, error) {
		return s.exec(ctx, tx, "run_ask_end", sql.Named("run", id))
	})
}

// FailRun implements run.Runs.
func (s *RunStore) FailRun(ctx context.Context, id, reason string, stale time.Duration, a run.Audit) (bool, error) {
	return s.changeAudited(ctx, s.op("fail run"), a, func(tx *sql.Tx) (int64, error) {
		before, found, err := s.readBrief(ctx, tx, id)
		if err != nil || !found {
			return 0, err
		}
		n, err := s.exec(ctx, tx, "run_fail", sql.Named("run", id), sql.Named("epoch", int64(before.Epoch)),
			sql.Named("reason", run.Truncate(reason, run.MaxWhy)), millis("stale", stale))
		if err != nil || n == 0 {
			return 0, err
		}
		return n, s.endWorker(ctx, tx, before.Owner, run.WorkerFailed)
	})
}

// ResumeRun implements run.Runs. The batches get a new epoch and a new attempt, because the queue may still have
// their messages.
func (s *RunStore) ResumeRun(ctx context.Context, id string, a run.Audit) (bool, error) {
	return s.changeAudited(ctx, s.op("resume run"), a, func(tx *sql.Tx) (int64, error) {
		n, err := s.exec(ctx, tx, "run_resume", sql.Named("run", id))
		if err != nil || n == 0 {
			return 0, err
		}
		cancelled := sql.Named("cancelled", run.CancelledError)
		waiting, err := s.readTexts(ctx, tx, "batches_waiting", sql.Named("run", id))
		if err != nil {
			return 0, err
		}
		given, err := s.readTexts(ctx, tx, "batches_cancelled", sql.Named("run", id), cancelled)
		if err != nil {
			return 0, err
		}
		_, err = s.execRows(ctx, tx, "batches_resume", keyRows(append(waiting, given...)), cancelled)
		return n, err
	})
}

// changeAudited runs f and writes the entry in one transaction. It writes no entry if f changed no row.
func (s *RunStore) changeAudited(
	ctx context.Context, op string, a run.Audit, f func(tx *sql.Tx) (int64, error),
) (changed bool, err error) {
	err = s.inTx(ctx, op, func(tx *sql.Tx) error {
		n, err := f(tx)
		if err != nil || n == 0 {
			return err
		}
		changed = true
		return s.audit(ctx, tx, a)
	})
	return changed && err == nil, err
}
