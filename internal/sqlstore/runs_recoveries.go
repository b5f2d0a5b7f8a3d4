package sqlstore

import (
	"context"
	"database/sql"
	"time"

	"sqlwriter/internal/ops"
	"sqlwriter/internal/run"
)

// Unsent implements run.Recoveries.
func (s *Runs) Unsent(ctx context.Context, id string, limit int) ([]run.Job, error) {
	return s.jobs(ctx, s.op("unsent batches"), stJobsOfRunByStatus, limit, sql.Named("run", id), sql.Named("status", s.key(string(run.PendingQueue))))
}

// attempts are batches as the statements that change several of them take them.
func attempts(jobs []run.Job) [][]any {
	list := make([][]any, len(jobs))
	for i, j := range jobs {
		list[i] = []any{j.ID, j.Attempt}
	}
	byKey(list)
	return list
}

// MarkQueued implements run.Recoveries.
func (s *Runs) MarkQueued(ctx context.Context, jobs []run.Job) (int, error) {
	var changed int64
	err := s.inTx(ctx, s.op("mark queued"), func(tx *sql.Tx) (err error) {
		changed, err = s.execRows(ctx, tx, "jobs_queued", attempts(jobs))
		return err
	})
	if err != nil {
		return 0, err
	}
	return int(changed), nil
}

// MarkUnsent implements run.Recoveries.
func (s *Runs) MarkUnsent(ctx context.Context, jobs []run.Job, reason string, counted bool) (retry, failed int, err error) {
	var again, over int64
	list, why := attempts(jobs), sql.Named("reason", ops.Clip(reason, ops.MaxWhy))
	err = s.inTx(ctx, s.op("mark unsent"), func(tx *sql.Tx) (err error) {
		if counted {
			over, err = s.execRows(ctx, tx, "jobs_refused", list, why, sql.Named("given_up", run.MaxQueueError), sql.Named("most", int64(run.MaxQueueAttempts)))
			if err != nil {
				return err
			}
		}
		again, err = s.execRows(ctx, tx, "jobs_unsent", list, why, sql.Named("counted", bit(counted)))
		return err
	})
	if err != nil {
		return 0, 0, err
	}
	return int(again), int(over), nil
}

// ToSend implements run.Recoveries.
func (s *Runs) ToSend(ctx context.Context, sysName string, stale time.Duration, limit int) ([]run.Job, error) {
	return s.jobs(ctx, s.op("batches to send"), "jobs_to_send", limit, sql.Named("sys_name", sysName), millis("stale", stale))
}

// Silence implements run.Recoveries.
func (s *Runs) Silence(ctx context.Context, sysName string, silent time.Duration, limit int) (int, error) {
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
func (s *Runs) candidates(ctx context.Context, tx *sql.Tx, name string, limit int, args ...any) ([][]any, error) {
	if limit <= 0 {
		return nil, nil
	}
	var jobs []run.Job
	err := s.each(ctx, tx, name, func(rows *sql.Rows) error {
		var j run.Job
		if err := rows.Scan(&j.ID, &j.Attempt); err != nil {
			return err
		}
		jobs = append(jobs, j)
		return nil
	}, append(args, sql.Named("limit", int64(limit)))...)
	return attempts(jobs), err
}

// Bury implements run.Recoveries. A worker says something with its batch, so that those of buried batches are among the
// workers that have said nothing.
func (s *Runs) Bury(ctx context.Context, sysName string, stale, released time.Duration, limit int) (jobs, workers int, err error) {
	var buried, failed int64
	err = s.inTx(ctx, s.op("bury"), func(tx *sql.Tx) error {
		sys, dead, left := sql.Named("sys_name", sysName), millis("stale", stale), millis("released", released)
		list, err := s.candidates(ctx, tx, "jobs_dead", limit, sys, dead, left)
		if err != nil {
			return err
		}
		if buried, err = s.execRows(ctx, tx, "jobs_bury", list, dead, left); err != nil || limit <= 0 {
			return err
		}
		ids, err := s.readTexts(ctx, tx, "workers_dead", sys, dead, sql.Named("limit", int64(limit)))
		if err != nil {
			return err
		}
		rows := make([][]any, len(ids))
		for i, id := range ids {
			rows[i] = []any{id}
		}
		byKey(rows)
		failed, err = s.execRows(ctx, tx, "workers_bury", rows, dead)
		return err
	})
	if err != nil {
		return 0, 0, err
	}
	return int(buried), int(failed), nil
}

// OpenRuns implements run.Recoveries.
func (s *Runs) OpenRuns(ctx context.Context, sysName string, limit int) ([]run.Run, error) {
	return s.runList(ctx, s.op("open runs"), "run_open", limit, sql.Named("sys_name", sysName))
}
