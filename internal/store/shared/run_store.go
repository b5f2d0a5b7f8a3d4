package shared

import (
	"context"
	"database/sql"
	"embed"
	"fmt"
	"io/fs"
	"math"
	"path"
	"strings"
	"text/template"
	"time"

	"sqlwriter/internal/fault"
	"sqlwriter/internal/ops"
	"sqlwriter/internal/run"
)

//go:embed runs/*.sql runs/parts/*.sql
var runFiles embed.FS

// RunDialect is the SQL syntax of the run store in which the engines differ.
type RunDialect struct {
	Dialect
	Batch, BatchItem, Worker, ErrorDetail string
	// AgoFormat and InFormat are formats for fmt with the name of a parameter. They make the time that many
	// milliseconds before and after now. Both have the precision of the columns, so a row written just now is not
	// later than now.
	AgoFormat, InFormat string
	// ListOf is the table of a JSON array of arrays. It takes the parameter and the columns in the order of the inner
	// arrays, each with its type on a server ("listed_id varchar(64)").
	ListOf func(parameter string, columns []string) string
	// HashFormat is a format for fmt with an expression of 32 bytes. It makes a hash of the columns' type.
	HashFormat string
	// UpdateByAlias makes an UPDATE by a list name the table in its FROM and the alias as its target.
	UpdateByAlias bool
	// ForceOrder, at the end of a statement, makes the server start with the list and not with the table.
	ForceOrder string
}

// Ago is the time that many milliseconds before now.
func (d RunDialect) Ago(parameter string) string { return fmt.Sprintf(d.AgoFormat, "@"+parameter) }

// In is the time that many milliseconds after now.
func (d RunDialect) In(parameter string) string { return fmt.Sprintf(d.InFormat, "@"+parameter) }

// List is the table of a JSON parameter.
func (d RunDialect) List(parameter string, columns ...string) string {
	return d.ListOf("@"+parameter, columns)
}

// NestedList is List inside a derived table, for the layout alone.
func (d RunDialect) NestedList(parameter string, columns ...string) string {
	return strings.ReplaceAll(d.List(parameter, columns...), "\n", "\n    ")
}

// Update is the start of an UPDATE by a list.
func (d RunDialect) Update(table, alias string) string {
	if d.UpdateByAlias {
		return "UPDATE " + alias
	}
	return "UPDATE " + table + " AS " + alias
}

// JoinTarget joins the updated table to the list, where UpdateByAlias is set.
func (d RunDialect) JoinTarget(table, alias string) string {
	if d.UpdateByAlias {
		return "CROSS JOIN " + table + " AS " + alias + "\n"
	}
	return ""
}

// Hash is a hash of a list, by its place in the parameter @hashes.
func (d RunDialect) Hash(place string) string {
	return fmt.Sprintf(d.HashFormat, "SUBSTRING(@hashes, 32 * "+place+" + 1, 32)")
}

// OneHash is a hash that is a parameter by itself.
func (d RunDialect) OneHash(parameter string) string { return fmt.Sprintf(d.HashFormat, "@"+parameter) }

// Failures lists the outcomes that failure_count counts, for IN.
func (d RunDialect) Failures() string {
	var list []string
	for _, o := range run.Outcomes() {
		if !o.Success() {
			list = append(list, "'"+string(o)+"'")
		}
	}
	return strings.Join(list, ", ")
}

// Statuses lists all statuses of a batch, for IN. Naming all lets a query about one run use the index that begins
// with the status.
func (d RunDialect) Statuses() string {
	var list []string
	for _, s := range run.BatchStatuses() {
		list = append(list, "'"+string(s)+"'")
	}
	return strings.Join(list, ", ")
}

// listData selects the variants of a template.
type listData struct {
	RunDialect
	ByRun, ByStatus, ByOutcome, Ended bool
}

// RunEngine is a database as the run store uses it.
type RunEngine struct {
	Engine
	RunDialect RunDialect
}

func (e RunEngine) changes(texts map[string]string) changes {
	return changes{statements{engine: e.Engine, texts: texts}}
}

// RunStore implements run.Store on a database. It is safe for concurrent use.
//
// Every transaction locks tables in one order: run, batch, batch_item, worker, error_detail, audit_log. It locks the
// rows of a table in the order of their keys.
type RunStore struct{ changes }

var _ run.Store = (*RunStore)(nil)

// NewRunStore makes the run store of an engine without using the database.
func NewRunStore(e RunEngine) *RunStore {
	texts, err := RunTexts(e.RunDialect)
	if err != nil {
		panic("shared: " + err.Error()) // the templates and their data are constant
	}
	return &RunStore{e.changes(texts)}
}

// The statements that share a file. Each has a plan of its own.
const (
	stBatchesOfRun          = "batches_of_run"
	stBatchesOfRunByStatus  = "batches_of_run_by_status"
	stBatchesLatest         = "batches_latest"
	stBatchesLatestByStatus = "batches_latest_by_status"
	stBatchesList           = "batches_list"
	stItems                 = "items_page"
	stItemsByOutcome        = "items_page_by_outcome"
	stRunLease              = "run_lease"
	stRunLeaseEnded         = "run_lease_ended"
)

// RunTexts returns the statements by name (the file's name without .sql, or one of the constants).
func RunTexts(d RunDialect) (map[string]string, error) {
	t, err := template.New("").Option("missingkey=error").ParseFS(auditLogFiles, "auditlog/begin.sql")
	if err != nil {
		return nil, fmt.Errorf("parse: %w", err)
	}
	if t, err = t.ParseFS(runFiles, "runs/*.sql", "runs/parts/*.sql"); err != nil {
		return nil, fmt.Errorf("parse: %w", err)
	}
	files, err := fs.Glob(runFiles, "runs/*.sql")
	if err != nil {
		return nil, fmt.Errorf("list: %w", err)
	}
	texts := map[string]string{}
	for _, f := range files {
		name := strings.TrimSuffix(path.Base(f), ".sql")
		if name == stBatchesList {
			continue
		}
		if texts[name], err = render(t, name, listData{RunDialect: d}); err != nil {
			return nil, err
		}
	}
	for name, of := range map[string]struct {
		file string
		data listData
	}{
		stBatchesOfRun:          {stBatchesList, listData{RunDialect: d, ByRun: true}},
		stBatchesOfRunByStatus:  {stBatchesList, listData{RunDialect: d, ByRun: true, ByStatus: true}},
		stBatchesLatest:         {stBatchesList, listData{RunDialect: d}},
		stBatchesLatestByStatus: {stBatchesList, listData{RunDialect: d, ByStatus: true}},
		stItemsByOutcome:        {stItems, listData{RunDialect: d, ByOutcome: true}},
		stRunLeaseEnded:         {stRunLease, listData{RunDialect: d, Ended: true}},
	} {
		if texts[name], err = render(t, of.file, of.data); err != nil {
			return nil, err
		}
	}
	return texts, nil
}

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
	_, err := s.exec(ctx, tx, "worker_begin", sql.Named("owner", w.ID), sql.Named("kind", kind), sql.Named("instance", ops.Truncate(w.Instance, ops.MaxBy)),
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
	if w.ID == "" || len(w.ID) > ops.MaxRunID {
		return fault.New(fault.Internal, op, "worker", "expected a worker's id of 1 to %d bytes, found %d", ops.MaxRunID, len(w.ID))
	}
	return nil
}
