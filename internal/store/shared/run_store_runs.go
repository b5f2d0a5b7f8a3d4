package shared

import (
	"context"
	"database/sql"
	"maps"
	"slices"
	"strings"
	"time"

	"sqlwriter/internal/fault"
	"sqlwriter/internal/ops"
	"sqlwriter/internal/run"
)

// StartRun implements run.Runs.
func (s *RunStore) StartRun(ctx context.Context, r run.Run, a run.Audit) error {
	op := s.op("start run")
	k, err := ops.Run{ID: r.ID, Kind: string(r.Kind), Filter: r.Filter, RequestedBy: r.RequestedBy, Why: r.Why}.Normalize()
	if err != nil {
		return err
	}
	if a, err = normalizedAudit(a); err != nil {
		return err
	}
	err = s.inTx(ctx, op, func(tx *sql.Tx) error {
		_, err := s.exec(ctx, tx, "run_start", sql.Named("run", k.ID), sql.Named("sys_name", r.SysName), sql.Named("kind", k.Kind),
			sql.Named("filter", s.d.Long(string(k.Filter))), sql.Named("pattern", r.Pattern), sql.Named("rate", int64(r.Rate)),
			sql.Named("bound", int64(r.Limit)), sql.Named("matched", int64(r.Matched)), sql.Named("at_least", bit(r.AtLeast)),
			sql.Named("named", int64(run.Named(k.Filter))), sql.Named("by", k.RequestedBy), sql.Named("why", k.Why))
		if err != nil {
			return err
		}
		return s.audit(ctx, tx, a)
	})
	if fault.Has(err, fault.OwnWhenAlone) { // a run's id is the only key that the database does not choose
		return fault.New(fault.Internal, op, "run_exists", "there is a run %s already", r.ID)
	}
	return err
}

// Run implements run.Runs.
func (s *RunStore) Run(ctx context.Context, id string) (run.Run, bool, error) {
	r, found, err := s.run(ctx, s.d.Read, id)
	return r, found, s.d.Classify(s.op("read run"), err)
}

// ListRuns implements run.Runs.
func (s *RunStore) ListRuns(ctx context.Context, limit int) ([]run.Run, error) {
	list := []run.Run{}
	err := s.page(ctx, s.op("list runs"), "run_latest", limit, func(rows *sql.Rows) error {
		var filter sql.NullString
		r, err := scanRun(rows, &filter)
		r.Filter = rawOf(filter)
		list = append(list, r)
		return err
	}, s.environment())
	if err != nil {
		return nil, err
	}
	return list, nil
}

// Stats implements run.Runs. A run that is not there has none.
func (s *RunStore) Stats(ctx context.Context, id string) (run.Stats, error) {
	stats, err := s.stats(ctx, s.d.Read, id)
	return stats, s.d.Classify(s.op("run stats"), err)
}

// BatchCounts implements run.Runs.
func (s *RunStore) BatchCounts(ctx context.Context, id string) (map[run.BatchStatus]int, error) {
	found, err := counts[run.BatchStatus](ctx, s, s.d.Read, "run_jobs", sql.Named("run", id))
	return found, s.d.Classify(s.op("count batches"), err)
}

// ClaimRun implements run.Runs.
func (s *RunStore) ClaimRun(
	ctx context.Context, id string, epoch, shown int, w run.Worker, stale time.Duration,
) (r run.Run, claimed bool, err error) {
	op := s.op("claim run")
	if err := claimant(op, w); err != nil {
		return run.Run{}, false, err
	}
	err = s.inTx(ctx, op, func(tx *sql.Tx) error {
		before, _, err := s.brief(ctx, tx, id) // its owner is the former one as long as the epoch is the same
		if err != nil {
			return err
		}
		n, err := s.exec(ctx, tx, "run_claim", sql.Named("run", id), sql.Named("epoch", int64(epoch)), sql.Named("owner", w.ID),
			sql.Named("shown", int64(shown)), millis("stale", stale))
		if err != nil || n == 0 {
			return err
		}
		if err := s.end(ctx, tx, before.Owner, former(epoch, shown)); err != nil {
			return err
		}
		if err := s.begin(ctx, tx, kindManager, w, id, ""); err != nil {
			return err
		}
		r, claimed, err = s.run(ctx, tx, id)
		return err
	})
	if err != nil || !claimed {
		return run.Run{}, false, err
	}
	return r, true, nil
}

// runLeaseArgs are the parameters of leased.sql.
func runLeaseArgs(l run.RunLease, more ...any) []any {
	return append(more, sql.Named("run", l.Run), sql.Named("owner", l.Owner), sql.Named("epoch", int64(l.Epoch)))
}

// BeatRun implements run.Runs.
func (s *RunStore) BeatRun(ctx context.Context, l run.RunLease) (cancel bool, err error) {
	op := s.op("beat run")
	err = s.inTx(ctx, op, func(tx *sql.Tx) error {
		n, err := s.exec(ctx, tx, "run_beat", runLeaseArgs(l)...)
		if err := one(n, err, op, runLeaseLost); err != nil {
			return err
		}
		if err := s.beat(ctx, tx, l.Owner); err != nil {
			return err
		}
		cancel, err = s.wanted(ctx, tx, l.Run)
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
		byKey[key], list[i] = d, []any{key}
	}
	known := map[string]bool{}
	for part := range slices.Chunk(list, maxPage) {
		rows, err := s.rows(part)
		if err != nil {
			return nil, err
		}
		keys, err := s.readTexts(ctx, s.d.Read, "items_known", sql.Named("run", id), rows)
		if err != nil {
			return nil, s.d.Classify(op, err)
		}
		for _, key := range keys {
			known[byKey[key]] = true
		}
	}
	return known, nil
}

// maxPage is how many documents are asked for at once: a page of a selection.
const maxPage = 1000

// AddChunk implements run.Runs.
func (s *RunStore) AddChunk(ctx context.Context, l run.RunLease, c run.Chunk, audits ...run.Audit) error {
	op := s.op("add chunk")
	if err := possible(op, c); err != nil {
		return err
	}
	kept, err := normalizedAudits(audits)
	if err != nil {
		return err
	}
	return s.inTx(ctx, op, func(tx *sql.Tx) error {
		documents := 0
		for _, b := range c.Batches {
			documents += len(b)
		}
		n, err := s.exec(ctx, tx, "run_add", runLeaseArgs(l, sql.Named("first", int64(c.First)), sql.Named("batches", int64(len(c.Batches))),
			sql.Named("documents", int64(documents)), sql.Named("watermark", s.d.Long(c.Watermark)), millis("wait", c.Wait))...)
		if err := one(n, err, op, "the run is not this manager's any more, is to end, or has other batches"); err != nil {
			return err
		}
		if err := s.addBatches(ctx, tx, op, l.Run, c); err != nil {
			return err
		}
		if err := s.beat(ctx, tx, l.Owner); err != nil {
			return err
		}
		return s.audit(ctx, tx, kept...)
	})
}

// possible refuses a chunk that cannot be.
func possible(op string, c run.Chunk) error {
	if c.Initial != run.PendingQueue && c.Initial != run.Queued {
		return fault.New(fault.Internal, op, "status", "expected %s or %s, found %q", run.PendingQueue, run.Queued, c.Initial)
	}
	seen := map[string]bool{}
	for _, documents := range c.Batches {
		if len(documents) == 0 || len(documents) > maxRows {
			return fault.New(fault.Internal, op, "batch_size", "expected 1 to %d documents in a batch, found %d", maxRows, len(documents))
		}
		for _, d := range documents {
			if seen[d] {
				return knownErr(op)
			}
			seen[d] = true
		}
	}
	return nil
}

func knownErr(op string) error {
	return fault.New(fault.Internal, op, "known", "the run has a document of the chunk already")
}

// addBatches adds the batches of a chunk with their documents.
func (s *RunStore) addBatches(ctx context.Context, tx *sql.Tx, op, id string, c run.Chunk) error {
	r, _, err := s.brief(ctx, tx, id)
	if err != nil {
		return err
	}
	var jobs, items [][]any
	for i, documents := range c.Batches {
		job := run.BatchID(r.SysName, id, c.First+i)
		jobs = append(jobs, []any{job, c.First + i, len(documents)})
		for position, d := range documents {
			items = append(items, []any{run.DocumentKey(d), d, job, position})
		}
	}
	_, err = s.execRows(ctx, tx, "jobs_insert", jobs, sql.Named("run", id), sql.Named("status", s.key(string(c.Initial))),
		sql.Named("attempt", int64(run.FirstAttempt)))
	if err != nil {
		return err
	}
	byKey(items)
	_, err = s.execRows(ctx, tx, "items_insert", items, sql.Named("run", id))
	if err = s.d.Classify(op, err); fault.Has(err, fault.OwnWhenAlone) {
		return knownErr(op)
	}
	return err
}

// byKey sorts rows by their first column: whoever touches several rows of a table does it in that order.
func byKey(list [][]any) {
	slices.SortFunc(list, func(a, b []any) int { return strings.Compare(a[0].(string), b[0].(string)) })
}

// keys are keys as the rows of a list, in their order.
func keys(ids []string) [][]any {
	list := make([][]any, len(ids))
	for i, id := range ids {
		list[i] = []any{id}
	}
	byKey(list)
	return list
}

// EndHandOff implements run.Runs.
func (s *RunStore) EndHandOff(ctx context.Context, l run.RunLease, a run.Audit) error {
	a, err := normalizedAudit(a)
	if err != nil {
		return err
	}
	return s.letGoOfRun(ctx, s.op("end hand-off"), l, true, run.WorkerCompleted, a)
}

// ReleaseRun implements run.Runs.
func (s *RunStore) ReleaseRun(ctx context.Context, l run.RunLease) error {
	return s.letGoOfRun(ctx, s.op("release run"), l, false, run.WorkerIdle)
}

// letGoOfRun ends a manager's hold of a run.
func (s *RunStore) letGoOfRun(ctx context.Context, op string, l run.RunLease, ended bool, status run.WorkerStatus, kept ...run.Audit) error {
	return s.inTx(ctx, op, func(tx *sql.Tx) error {
		n, err := s.exec(ctx, tx, "run_release", runLeaseArgs(l, sql.Named("ended", bit(ended)))...)
		if err := one(n, err, op, runLeaseLost); err != nil {
			return err
		}
		if err := s.end(ctx, tx, l.Owner, status); err != nil {
			return err
		}
		return s.audit(ctx, tx, kept...)
	})
}

// bit is a condition as both dialects take it.
func bit(yes bool) int64 {
	if yes {
		return 1
	}
	return 0
}

// CompleteRun implements run.Runs. A run that is handed off and has no open batch is not cancelled, asked to end or not: nothing
// of it was cut short. The row of the run is kept first: whoever adds or requeues a batch has to have it too.
func (s *RunStore) CompleteRun(ctx context.Context, id string, stale time.Duration, audit func(run.RunStatus, run.Stats) run.Audit) (ended bool, err error) {
	err = s.inTx(ctx, s.op("complete run"), func(tx *sql.Tx) error {
		n, err := s.exec(ctx, tx, stRunLease, sql.Named("run", id))
		if err != nil || n == 0 {
			return err
		}
		status, err := s.last(ctx, tx, id, stale)
		if err != nil || status == "" {
			return err
		}
		stats, err := s.stats(ctx, tx, id)
		if err != nil {
			return err
		}
		if status == run.RunCompleted && stats.Failed() { // as run_complete.sql has it
			status = run.RunCompletedWithFailures
		}
		a, err := normalizedAudit(audit(status, stats))
		if err != nil {
			return err
		}
		if err := s.endAll(ctx, tx, id, status); err != nil {
			return err
		}
		ended = true
		return s.audit(ctx, tx, a)
	})
	return ended && err == nil, err
}

// last ends a run if it is time, and says how, completed with failures or without as completed; "" when it is not.
func (s *RunStore) last(ctx context.Context, tx *sql.Tx, id string, stale time.Duration) (run.RunStatus, error) {
	n, err := s.exec(ctx, tx, "run_complete", sql.Named("run", id))
	if err != nil || n > 0 {
		return run.RunCompleted, err
	}
	if n, err = s.exec(ctx, tx, "run_cancelled", sql.Named("run", id), millis("stale", stale)); err != nil || n == 0 {
		return "", err
	}
	open, err := s.readTexts(ctx, tx, "jobs_open", sql.Named("run", id))
	if err != nil {
		return "", err
	}
	if _, err := s.execRows(ctx, tx, "jobs_cancel", keys(open), sql.Named("cancelled", run.CancelledError)); err != nil {
		return "", err
	}
	cut, err := s.readTexts(ctx, tx, "jobs_cut", sql.Named("run", id), sql.Named("cancelled", run.CancelledError))
	if err != nil {
		return "", err
	}
	return run.RunCancelled, s.countUp(ctx, tx, cut...)
}

// endAll ends the workers that still run for a run that has ended: its manager did all there was to do, and whoever has a batch
// of a cancelled one is dead.
func (s *RunStore) endAll(ctx context.Context, tx *sql.Tx, id string, status run.RunStatus) error {
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
		if err := s.end(ctx, tx, worker, ends[worker]); err != nil {
			return err
		}
	}
	return nil
}

// CancelRun implements run.Runs.
func (s *RunStore) CancelRun(ctx context.Context, id string, a run.Audit) (bool, error) {
	return s.change(ctx, s.op("cancel run"), a, func(tx *sql.Tx) (int64, error) {
		return s.exec(ctx, tx, "run_ask_end", sql.Named("run", id))
	})
}

// FailRun implements run.Runs.
func (s *RunStore) FailRun(ctx context.Context, id, reason string, stale time.Duration, a run.Audit) (bool, error) {
	return s.change(ctx, s.op("fail run"), a, func(tx *sql.Tx) (int64, error) {
		before, found, err := s.brief(ctx, tx, id)
		if err != nil || !found {
			return 0, err
		}
		n, err := s.exec(ctx, tx, "run_fail", sql.Named("run", id), sql.Named("epoch", int64(before.Epoch)),
			sql.Named("reason", ops.Truncate(reason, ops.MaxWhy)), millis("stale", stale))
		if err != nil || n == 0 {
			return 0, err
		}
		return n, s.end(ctx, tx, before.Owner, run.WorkerFailed)
	})
}

// ResumeRun implements run.Runs. Its batches get another epoch and another attempt: the queue may still have their messages.
func (s *RunStore) ResumeRun(ctx context.Context, id string, a run.Audit) (bool, error) {
	return s.change(ctx, s.op("resume run"), a, func(tx *sql.Tx) (int64, error) {
		n, err := s.exec(ctx, tx, "run_resume", sql.Named("run", id))
		if err != nil || n == 0 {
			return 0, err
		}
		cancelled := sql.Named("cancelled", run.CancelledError)
		waiting, err := s.readTexts(ctx, tx, "jobs_waiting", sql.Named("run", id))
		if err != nil {
			return 0, err
		}
		given, err := s.readTexts(ctx, tx, "jobs_cancelled", sql.Named("run", id), cancelled)
		if err != nil {
			return 0, err
		}
		_, err = s.execRows(ctx, tx, "jobs_resume", keys(append(waiting, given...)), cancelled)
		return n, err
	})
}

// change makes a change with its entry, or none of both.
func (s *RunStore) change(ctx context.Context, op string, a run.Audit, f func(tx *sql.Tx) (int64, error)) (changed bool, err error) {
	a, err = normalizedAudit(a)
	if err != nil {
		return false, err
	}
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
