package shared

import (
	"context"
	"database/sql"
	"slices"
	"strings"
	"time"

	"sqlwriter/internal/run"
)

// Unsent implements run.Recoveries.
func (s *RunStore) Unsent(ctx context.Context, id string, limit int) ([]run.Batch, error) {
	return s.readBatches(ctx, s.op("unsent batches"), stBatchesOfRunByStatus, limit, sql.Named("run", id),
		sql.Named("status", string(run.PendingQueue)), sql.Named("after", ""))
}

// attemptRows makes sorted rows of batches with their attempts.
func attemptRows(batches []run.Batch) [][]any {
	list := make([][]any, len(batches))
	for i, j := range batches {
		list[i] = []any{j.ID, j.Attempt}
	}
	sortByKey(list)
	return list
}

// MarkQueued implements run.Recoveries.
func (s *RunStore) MarkQueued(ctx context.Context, l run.RunLease, batches []run.Batch) (int, error) {
	var changed int64
	err := s.inTx(ctx, s.op("mark queued"), func(tx *sql.Tx) (err error) {
		if l.Run != "" && len(batches) > 0 {
			if _, err = s.exec(ctx, tx, "run_sent", runLeaseArgs(l)...); err != nil {
				return err
			}
		}
		changed, err = s.execRows(ctx, tx, "batches_queued", attemptRows(batches))
		return err
	})
	if err != nil {
		return 0, err
	}
	return int(changed), nil
}

// MarkUnsent implements run.Recoveries.
func (s *RunStore) MarkUnsent(
	ctx context.Context, batches []run.Batch, reason string, counted bool, audit func(run.Batch) run.Audit,
) (retry, failed int, err error) {
	var requeued int64
	list, why := attemptRows(batches), sql.Named("reason", run.Truncate(reason, run.MaxWhy))
	err = s.inTx(ctx, s.op("mark unsent"), func(tx *sql.Tx) (err error) {
		var refused []string
		if counted {
			if refused, err = s.failRefused(ctx, tx, list, why); err != nil {
				return err
			}
		}
		if requeued, err = s.execRows(ctx, tx, "batches_unsent", list, why,
			sql.Named("counted", boolInt(counted))); err != nil {
			return err
		}
		failed = len(refused)
		return s.recordFailed(ctx, tx, refused, audit)
	})
	if err != nil {
		return 0, 0, err
	}
	return int(requeued), failed, nil
}

// failRefused fails the batches whose message was refused too often, and returns their ids. It changes them one by
// one, because a statement for a list does not name the changed rows.
func (s *RunStore) failRefused(
	ctx context.Context, tx *sql.Tx, list [][]any, why sql.NamedArg,
) (refused []string, err error) {
	most := sql.Named("most", int64(run.MaxQueueAttempts))
	var found []run.Batch
	for part := range slices.Chunk(list, maxRows) {
		rows, err := rowsArgs(part)
		if err != nil {
			return nil, err
		}
		more, err := s.readAttempts(ctx, tx, "batches_refused", append(rows, most)...)
		if err != nil {
			return nil, err
		}
		found = append(found, more...)
	}
	slices.SortFunc(found, func(a, b run.Batch) int { return strings.Compare(a.ID, b.ID) })
	for _, j := range found {
		n, err := s.exec(ctx, tx, "batch_refused", sql.Named("batch", j.ID),
			sql.Named("attempt", int64(j.Attempt)), most, why,
			sql.Named("given_up", run.MaxQueueError))
		if err != nil {
			return nil, err
		}
		if n > 0 {
			refused = append(refused, j.ID)
		}
	}
	return refused, nil
}

// recordFailed counts and audits batches that failed.
func (s *RunStore) recordFailed(ctx context.Context, tx *sql.Tx, ids []string, audit func(run.Batch) run.Audit) error {
	if err := s.saveCounts(ctx, tx, ids...); err != nil {
		return err
	}
	for _, id := range ids {
		j, _, err := s.readBatch(ctx, tx, id)
		if err != nil {
			return err
		}
		if err := s.audit(ctx, tx, audit(j)); err != nil {
			return err
		}
	}
	return nil
}

// readAttempts reads batches with their attempts.
func (s *RunStore) readAttempts(
	ctx context.Context, tx *sql.Tx, name string, args ...any,
) (batches []run.Batch, err error) {
	err = s.each(ctx, tx, name, func(rows *sql.Rows) error {
		var j run.Batch
		if err := rows.Scan(&j.ID, &j.Attempt); err != nil {
			return err
		}
		batches = append(batches, j)
		return nil
	}, args...)
	return batches, err
}

// ToSend implements run.Recoveries.
func (s *RunStore) ToSend(ctx context.Context, sysName string, limit int) ([]run.Batch, error) {
	return s.readBatches(ctx, s.op("batches to send"), "batches_to_send", limit, sql.Named("sys_name", sysName))
}

// OnTheWay implements run.Recoveries.
func (s *RunStore) OnTheWay(ctx context.Context, sysName string) (all run.OnTheWay, err error) {
	err = s.each(ctx, s.engine.Read, "batches_on_the_way", func(rows *sql.Rows) error {
		return rows.Scan(&all.Busy, &all.Retry, &all.HandingOff)
	}, sql.Named("sys_name", sysName))
	return all, s.engine.Classify(s.op("on the way"), err)
}

// RequeueSilent implements run.Recoveries.
func (s *RunStore) RequeueSilent(ctx context.Context, sysName string, silent time.Duration, limit int) (int, error) {
	var changed int64
	err := s.inTx(ctx, s.op("silent runs"), func(tx *sql.Tx) error {
		list, err := s.candidates(ctx, tx, "batches_silent", limit, sql.Named("sys_name", sysName),
			millis("silent", silent))
		if err != nil {
			return err
		}
		changed, err = s.execRows(ctx, tx, "batches_silenced", list)
		return err
	})
	if err != nil {
		return 0, err
	}
	return int(changed), nil
}

// candidates reads the batches to change, each with the attempt that the change requires. A second statement changes
// them by their keys. One statement for both would lock rows in an order of its own.
func (s *RunStore) candidates(ctx context.Context, tx *sql.Tx, name string, limit int, args ...any) ([][]any, error) {
	if limit <= 0 {
		return nil, nil
	}
	batches, err := s.readAttempts(ctx, tx, name, append(args, sql.Named("limit", int64(limit)))...)
	return attemptRows(batches), err
}

// Rescue implements run.Recoveries. A worker's heartbeat is its batch's, so the silent workers include those of the
// rescued batches.
func (s *RunStore) Rescue(
	ctx context.Context, sysName string, stale, released time.Duration, limit int,
) (batches, workers int, err error) {
	var rescued, failed int64
	err = s.inTx(ctx, s.op("rescue"), func(tx *sql.Tx) error {
		sys, staleFor, releasedFor := sql.Named("sys_name", sysName), millis("stale", stale),
			millis("released", released)
		list, err := s.candidates(ctx, tx, "batches_dead", limit, sys, staleFor, releasedFor)
		if err != nil {
			return err
		}
		if rescued, err = s.execRows(ctx, tx, "batches_rescue", list, staleFor, releasedFor); err != nil || limit <= 0 {
			return err
		}
		ids, err := s.readTexts(ctx, tx, "workers_dead", sys, staleFor, sql.Named("limit", int64(limit)))
		if err != nil {
			return err
		}
		failed, err = s.execRows(ctx, tx, "workers_rescue", keyRows(ids), staleFor)
		return err
	})
	if err != nil {
		return 0, 0, err
	}
	return int(rescued), int(failed), nil
}

// OpenRuns implements run.Recoveries.
func (s *RunStore) OpenRuns(ctx context.Context, sysName string, limit int) ([]run.Run, error) {
	list := []run.Run{}
	err := s.page(ctx, s.op("open runs"), "run_open", limit, func(rows *sql.Rows) error {
		r, err := scanRun(rows)
		list = append(list, r)
		return err
	}, sql.Named("sys_name", sysName))
	if err != nil {
		return nil, err
	}
	return list, nil
}
