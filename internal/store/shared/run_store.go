package shared

import (
	"context"
	"database/sql"
	"math"
	"time"

	"sqlwriter/internal/fault"
	"sqlwriter/internal/run"
)

// RunStore implements run.Store on a database. It is safe for concurrent use.
//
// Every transaction locks tables in one order: run, batch, batch_item, worker, error_detail, audit_log. It locks the
// rows of a table in the order of their keys.
type RunStore struct{ changes }

var _ run.Store = (*RunStore)(nil)

// NewRunStore makes the run store of an engine without using the database.
func NewRunStore(e Engine) *RunStore { return &RunStore{changes{e.statements(OfRuns, OfAuditLog)}} }

// The statements that share a file. Each has a plan of its own.
const (
	stBatches              = "batches_list"
	stBatchesByStatus      = "batches_list_by_status"
	stBatchesOfRun         = "batches_of_run"
	stBatchesOfRunByStatus = "batches_of_run_by_status"
	stItems                = "items_page"
	stItemsByOutcome       = "items_page_by_outcome"
	stRunLease             = "run_lease"
	stRunLeaseEnded        = "run_lease_ended"
)

// Reasons of changedErr.
const (
	runLeaseLost   = "this manager no longer has the run"
	batchLeaseLost = "this worker no longer has the batch"
)

// millis is a duration in whole milliseconds that fit an int, the type that DATEADD takes.
func millis(name string, d time.Duration) sql.NamedArg {
	return sql.Named(name, min(max(0, d.Milliseconds()), int64(math.MaxInt32)))
}

// readTexts reads a query of one text column.
func (s *RunStore) readTexts(ctx context.Context, db querier, name string, args ...any) ([]string, error) {
	list := []string{}
	err := s.each(ctx, db, name, func(rows *sql.Rows) error {
		var text string
		if err := rows.Scan(&text); err != nil {
			return err
		}
		list = append(list, text)
		return nil
	}, args...)
	return list, err
}

func nullIfEmpty(text string) any {
	if text == "" {
		return nil
	}
	return text
}

func nullIfZero(n int64) any {
	if n == 0 {
		return nil
	}
	return n
}

// beginWorker adds the row of a worker that claimed a run or a batch.
func (s *RunStore) beginWorker(ctx context.Context, tx *sql.Tx, kind string, w run.Worker, runID, batch string) error {
	_, err := s.exec(ctx, tx, "worker_begin", sql.Named("owner", w.ID), sql.Named("kind", kind),
		sql.Named("instance", run.Truncate(w.Instance, run.MaxBy)),
		sql.Named("run", runID), sql.Named("batch", batch))
	return err
}

const (
	kindManager = "manager"
	kindWorker  = "worker"
)

// endWorker gives a running worker its final status. It ignores an empty id.
func (s *RunStore) endWorker(ctx context.Context, tx *sql.Tx, worker string, status run.WorkerStatus) error {
	if worker == "" {
		return nil
	}
	_, err := s.exec(ctx, tx, "worker_end", sql.Named("owner", worker), sql.Named("status", string(status)))
	return err
}

// beatWorker renews a worker's heartbeat.
func (s *RunStore) beatWorker(ctx context.Context, tx *sql.Tx, worker string) error {
	_, err := s.exec(ctx, tx, "worker_beat", sql.Named("owner", worker))
	return err
}

// checkWorker refuses a worker without an id, because an empty owner means that there is no owner.
func checkWorker(op string, w run.Worker) error {
	if w.ID == "" || len(w.ID) > run.MaxRunID {
		return fault.New(fault.Internal, op, fault.CodeBug, "expected a worker's id of 1 to %d bytes, found %d",
			run.MaxRunID, len(w.ID))
	}
	return nil
}
