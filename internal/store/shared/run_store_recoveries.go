package shared

import (
	"context"
	"database/sql"
	"slices"
	"strings"
	"time"

	"sqlwriter/internal/ops"
	"sqlwriter/internal/run"
)

// Unsent implements run.Recoveries.
func (s *RunStore) Unsent(ctx context.Context, id string, limit int) ([]run.Batch, error) {
	return s.batches(ctx, s.op("unsent batches"), stBatchesOfRunByStatus, limit, sql.Named("run", id), sql.Named("status", s.key(string(run.PendingQueue))))
}

// attempts are batches as the statements that change several of them take them.
func attempts(jobs []run.Batch) [][]any {
	list := make([][]any, len(jobs))
	for i, j := range jobs {
		list[i] = []any{j.ID, j.Attempt}
	}
	byKey(list)
	return list
}

// MarkQueued implements run.Recoveries.
func (s *RunStore) MarkQueued(ctx context.Context, l run.RunLease, jobs []run.Batch) (int, error) {
	var changed int64
	err := s.inTx(ctx, s.op("mark queued"), func(tx *sql.Tx) (err error) {
		if l.Run != "" && len(jobs) > 0 {
			if _, err = s.exec(ctx, tx, "run_sent", runLeaseArgs(l)...); err != nil {
				return err
			}
		}
		changed, err = s.execRows(ctx, tx, "jobs_queued", attempts(jobs))
		return err
	})
	if err != nil {
		return 0, err
	}
	return int(changed), nil
}

// MarkUnsent implements run.Recoveries.
func (s *RunStore) MarkUnsent(
	ctx context.Context, jobs []run.Batch, reason string, counted bool, audit func(run.Batch) run.Audit,
) (retry, failed int, err error) {
	var again int64
	list, why := attempts(jobs), sql.Named("reason", ops.Truncate(reason, ops.MaxWhy))
	err = s.inTx(ctx, s.op("mark unsent"), func(tx *sql.Tx) (err error) {
		var over []string
		if counted {
			if over, err = s.refuse(ctx, tx, list, why); err != nil {
				return err
			}
		}
		if again, err = s.execRows(ctx, tx, "jobs_unsent", list, why, sql.Named("counted", bit(counted))); err != nil {
			return err
		}
		failed = len(over)
		return s.givenUp(ctx, tx, over, audit)
	})
	if err != nil {
		return 0, 0, err
	}
	return int(again), failed, nil
}

// refuse gives those up whose message was refused once too often, and says which. They are looked for first and changed one by
// one: a list would not say which of them it changed.
func (s *RunStore) refuse(ctx context.Context, tx *sql.Tx, list [][]any, why sql.NamedArg) (over []string, err error) {
	most := sql.Named("most", int64(run.MaxQueueAttempts))
	var found []run.Batch
	for part := range slices.Chunk(list, maxRows) {
		rows, err := s.rows(part)
		if err != nil {
			return nil, err
		}
		more, err := s.attempted(ctx, tx, "jobs_refused", rows, most)
		if err != nil {
			return nil, err
		}
		found = append(found, more...)
	}
	slices.SortFunc(found, func(a, b run.Batch) int { return strings.Compare(a.ID, b.ID) })
	for _, j := range found {
		n, err := s.exec(ctx, tx, "job_refused", sql.Named("job", s.key(j.ID)), sql.Named("attempt", int64(j.Attempt)), most, why,
			sql.Named("given_up", run.MaxQueueError))
		if err != nil {
			return nil, err
		}
		if n > 0 {
			over = append(over, j.ID)
		}
	}
	return over, nil
}

// givenUp does what else belongs to batches that were given up.
func (s *RunStore) givenUp(ctx context.Context, tx *sql.Tx, ids []string, audit func(run.Batch) run.Audit) error {
	if err := s.countUp(ctx, tx, ids...); err != nil {
		return err
	}
	for _, id := range ids {
		j, _, err := s.batch(ctx, tx, id)
		if err != nil {
			return err
		}
		a, err := normalizedAudit(audit(j))
		if err != nil {
			return err
		}
		if err := s.audit(ctx, tx, a); err != nil {
			return err
		}
	}
	return nil
}

// attempted reads batches with their attempts.
func (s *RunStore) attempted(ctx context.Context, tx *sql.Tx, name string, args ...any) (jobs []run.Batch, err error) {
	err = s.each(ctx, tx, name, func(rows *sql.Rows) error {
		var j run.Batch
		if err := rows.Scan(&j.ID, &j.Attempt); err != nil {
			return err
		}
		jobs = append(jobs, j)
		return nil
	}, args...)
	return jobs, err
}

// ToSend implements run.Recoveries.
func (s *RunStore) ToSend(ctx context.Context, sysName string, limit int) ([]run.Batch, error) {
	return s.batches(ctx, s.op("batches to send"), "jobs_to_send", limit, sql.Named("sys_name", sysName))
}

// OnTheWay implements run.Recoveries.
func (s *RunStore) OnTheWay(ctx context.Context, sysName string) (all run.OnTheWay, err error) {
	err = s.each(ctx, s.d.Read, "jobs_on_the_way", func(rows *sql.Rows) error {
		return rows.Scan(&all.Busy, &all.Retry, &all.HandingOff)
	}, sql.Named("sys_name", sysName))
	return all, s.d.Classify(s.op("on the way"), err)
}

// RequeueSilent implements run.Recoveries.
func (s *RunStore) RequeueSilent(ctx context.Context, sysName string, silent time.Duration, limit int) (int, error) {
	var changed int64
	err := s.inTx(ctx, s.op("silent runs"), func(tx *sql.Tx) error {
		list, err := s.candidates(ctx, tx, "jobs_silent", limit, sql.Named("sys_name", sysName), millis("silent", silent))
		if err != nil {
			return err
		}
		changed, err = s.execRows(ctx, tx, "jobs_silenced", list)
		return err
	})
	if err != nil {
		return 0, err
	}
	return int(changed), nil
}

// candidates reads which batches are to be changed, each with the attempt that the change is bound to. They are looked for
// first and changed by their keys: a statement that did both would keep rows of several tables in an order of its own.
func (s *RunStore) candidates(ctx context.Context, tx *sql.Tx, name string, limit int, args ...any) ([][]any, error) {
	if limit <= 0 {
		return nil, nil
	}
	jobs, err := s.attempted(ctx, tx, name, append(args, sql.Named("limit", int64(limit)))...)
	return attempts(jobs), err
}

// Rescue implements run.Recoveries. A worker says something with its batch, so that those of buried batches are among the
// workers that have said nothing.
func (s *RunStore) Rescue(ctx context.Context, sysName string, stale, released time.Duration, limit int) (jobs, workers int, err error) {
	var buried, failed int64
	err = s.inTx(ctx, s.op("bury"), func(tx *sql.Tx) error {
		sys, dead, left := sql.Named("sys_name", sysName), millis("stale", stale), millis("released", released)
		list, err := s.candidates(ctx, tx, "jobs_dead", limit, sys, dead, left)
		if err != nil {
			return err
		}
		if buried, err = s.execRows(ctx, tx, "jobs_rescue", list, dead, left); err != nil || limit <= 0 {
			return err
		}
		ids, err := s.readTexts(ctx, tx, "workers_dead", sys, dead, sql.Named("limit", int64(limit)))
		if err != nil {
			return err
		}
		failed, err = s.execRows(ctx, tx, "workers_rescue", keys(ids), dead)
		return err
	})
	if err != nil {
		return 0, 0, err
	}
	return int(buried), int(failed), nil
}

// OpenRuns implements run.Recoveries.
func (s *RunStore) OpenRuns(ctx context.Context, sysName string, limit int) ([]run.Run, error) {
	list := []run.Run{}
	err := s.page(ctx, s.op("open runs"), "run_open", limit, func(rows *sql.Rows) error {
		r, _, err := scanBrief(rows)
		list = append(list, r)
		return err
	}, sql.Named("sys_name", sysName))
	if err != nil {
		return nil, err
	}
	return list, nil
}
