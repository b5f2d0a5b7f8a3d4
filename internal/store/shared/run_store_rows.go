package shared

import (
	"context"
	"database/sql"
	"encoding/json"
	"time"

	"sqlwriter/internal/fault"
	"sqlwriter/internal/invoice"
	"sqlwriter/internal/run"
)

// scanRun reads the columns of parts/run_columns.sql, then more.
func scanRun(rows *sql.Rows, more ...any) (r run.Run, err error) {
	var reason, owner sql.NullString
	var started, handedOff, ended, heartbeat, next, now moment
	err = rows.Scan(append([]any{
		&r.ID, &r.SysName, &r.Kind, &r.Rate, &r.Limit, &r.Matched, &r.AtLeast, &r.Named, &r.RequestedBy,
		&r.Why, &r.Status, &r.Cancel,
		&reason, &r.Documents, &r.Batches, &owner, &r.Epoch, &started, &handedOff, &ended, &heartbeat,
		&next, &r.LostManagers, &now,
	}, more...)...)
	if err != nil {
		return run.Run{}, err
	}
	r.Error, r.Owner = reason.String, owner.String
	r.StartedAt, r.HandedOffAt, r.EndedAt = started.Time, handedOff.Time, ended.Time
	if r.Epoch > 0 { // before the first claim the column has the time of the start
		r.HeartbeatAt = heartbeat.Time
	}
	if !next.IsZero() {
		r.NextIn = max(0, next.Sub(now.Time))
	}
	r.Silent = elapsed(heartbeat.Time, now.Time)
	r.Age = elapsed(started.Time, now.Time)
	if !ended.IsZero() {
		r.Age = elapsed(started.Time, ended.Time)
	}
	return r, nil
}

// elapsed is the time between two times. It is at least 0, because rounding can make the first one the later.
func elapsed(from, to time.Time) time.Duration { return max(0, to.Sub(from)) }

// scanBatch reads the columns of parts/batch_columns.sql.
func scanBatch(rows *sql.Rows) (run.Batch, error) {
	var j run.Batch
	var lastQueueError, reason, owner sql.NullString
	var created, queued, started, ended, heartbeat moment
	err := rows.Scan(&j.ID, &j.Run, &j.Number, &j.Status, &j.Attempt, &j.QueueAttempts, &lastQueueError,
		&reason, &owner, &j.Epoch,
		&j.Total, &j.Success, &j.Failure, &created, &queued, &started, &ended, &heartbeat, &j.LostWorkers)
	if err != nil {
		return run.Batch{}, err
	}
	j.LastQueueError, j.Error, j.Owner = lastQueueError.String, reason.String, owner.String
	j.CreatedAt, j.QueuedAt, j.StartedAt, j.EndedAt, j.HeartbeatAt = created.Time, queued.Time, started.Time,
		ended.Time, heartbeat.Time
	return j, nil
}

// readRun reads a run with its filter and its watermark, which may be long. It is for callers that show or select.
func (s *RunStore) readRun(ctx context.Context, db querier, id string) (r run.Run, found bool, err error) {
	err = s.each(ctx, db, "run_read", func(rows *sql.Rows) error {
		found = true
		var filter, watermark sql.NullString
		r, err = scanRun(rows, &filter, &watermark)
		r.Filter, r.Watermark = rawOf(filter), watermark.String
		return err
	}, sql.Named("run", id))
	return r, found && err == nil, err
}

// readBrief reads a run without its filter and its watermark. It is for calls made once for each batch.
func (s *RunStore) readBrief(ctx context.Context, db querier, id string) (r run.Run, found bool, err error) {
	err = s.each(ctx, db, "run_brief", func(rows *sql.Rows) error {
		found = true
		r, err = scanRun(rows)
		return err
	}, sql.Named("run", id))
	return r, found && err == nil, err
}

// endRequested reports whether an operator asked to end the run.
func (s *RunStore) endRequested(ctx context.Context, db querier, id string) (cancel bool, err error) {
	err = s.each(ctx, db, "run_wanted", func(rows *sql.Rows) error { return rows.Scan(&cancel) }, sql.Named("run", id))
	return cancel, err
}

func (s *RunStore) readBatch(ctx context.Context, db querier, id string) (j run.Batch, found bool, err error) {
	err = s.each(ctx, db, "batch_read", func(rows *sql.Rows) error {
		found = true
		j, err = scanBatch(rows)
		return err
	}, sql.Named("batch", id))
	return j, found && err == nil, err
}

// readBatches reads at most limit batches.
func (s *RunStore) readBatches(ctx context.Context, op, name string, limit int, args ...any) ([]run.Batch, error) {
	list := []run.Batch{}
	err := s.page(ctx, op, name, limit, func(rows *sql.Rows) error {
		j, err := scanBatch(rows)
		list = append(list, j)
		return err
	}, args...)
	if err != nil {
		return nil, err
	}
	return list, nil
}

// counts reads a query of a text, which may be NULL, and a number.
func counts[K ~string](ctx context.Context, s *RunStore, db querier, name string, arg sql.NamedArg) (map[K]int, error) {
	found := map[K]int{}
	err := s.each(ctx, db, name, func(rows *sql.Rows) error {
		var key sql.NullString
		var n int
		if err := rows.Scan(&key, &n); err != nil {
			return err
		}
		found[K(key.String)] = n
		return nil
	}, arg)
	return found, err
}

// readStats counts a run's batches and documents.
func (s *RunStore) readStats(ctx context.Context, db querier, id string) (stats run.Stats, err error) {
	if stats.Batches, err = counts[run.BatchStatus](ctx, s, db, "run_batches", sql.Named("run", id)); err != nil {
		return run.Stats{}, err
	}
	if stats.Outcomes, err = counts[invoice.Outcome](ctx, s, db, "run_outcomes", sql.Named("run", id)); err != nil {
		return run.Stats{}, err
	}
	err = s.each(ctx, db, "run_completed", func(rows *sql.Rows) error {
		var text sql.NullString
		var batches, documents int
		if err := rows.Scan(&text, &batches, &documents); err != nil {
			return err
		}
		each := map[invoice.Outcome]int{}
		if !text.Valid {
			stats.Outcomes[""] += documents
		} else if err := json.Unmarshal([]byte(text.String), &each); err != nil {
			return fault.Wrap(fault.Internal, "store: run stats", "counts",
				"the outcomes of batches of run "+id+" are not what was written", err)
		}
		for outcome, n := range each {
			stats.Outcomes[outcome] += n * batches
		}
		return nil
	}, sql.Named("run", id))
	return stats, err
}
