package shared

import (
	"cmp"
	"context"
	"database/sql"
	"embed"
	"encoding/json"
	"fmt"
	"io/fs"
	"math"
	"path"
	"slices"
	"strings"
	"text/template"
	"time"

	"sqlwriter/internal/fault"
	"sqlwriter/internal/ops"
	"sqlwriter/internal/run"
)

//go:embed runs/*.sql runs/parts/*.sql
var runFiles embed.FS

// maxRows is how many rows a statement writes at most.
const maxRows = 100

// RunWords are what the statements about runs say differently from engine to engine.
type RunWords struct {
	Words
	// Job, BatchItem, Worker and ErrorDetail are the tables.
	Batch, BatchItem, Worker, ErrorDetail string
	// AgoFormat and InFormat are the moment some milliseconds before and after now, for fmt: the verb is the parameter. Both
	// are of the precision that the columns have, so that what was written just now is not later than now.
	AgoFormat, InFormat string
	// ListOf is the table of a JSON array of arrays: a parameter's name, and for each column its name and its type on a server
	// ("listed_id char(64)"), in the order of the inner arrays.
	ListOf func(parameter string, columns []string) string
	// ByAlias: an UPDATE of what a list names has the table in its FROM; otherwise its target is the table itself.
	ByAlias bool
	// Late, before a column, keeps the engine from looking for rows by it: those that a list names are found by their keys.
	Late string
	// InOrder, at the end of a statement that begins with a list, keeps the server from beginning with the table.
	InOrder string
}

// Ago is the moment before now.
func (w RunWords) Ago(parameter string) string { return fmt.Sprintf(w.AgoFormat, "@"+parameter) }

// In is the moment after now.
func (w RunWords) In(parameter string) string { return fmt.Sprintf(w.InFormat, "@"+parameter) }

// List is the table of a parameter.
func (w RunWords) List(parameter string, columns ...string) string {
	return w.ListOf("@"+parameter, columns)
}

// Update begins the change of a table by a list.
func (w RunWords) Update(table, alias string) string {
	if w.ByAlias {
		return "UPDATE " + alias
	}
	return "UPDATE " + table + " AS " + alias
}

// Beside puts the table that is changed beside the list.
func (w RunWords) Beside(table, alias string) string {
	if w.ByAlias {
		return "CROSS JOIN " + table + " AS " + alias + "\n"
	}
	return ""
}

// Failures are the outcomes that failure_count counts, for IN.
func (w RunWords) Failures() string {
	var list []string
	for _, o := range run.Outcomes() {
		if !o.Success() {
			list = append(list, "'"+string(o)+"'")
		}
	}
	return strings.Join(list, ", ")
}

// Statuses are all statuses of a batch, for IN: an index that begins with the status then serves a run as well.
func (w RunWords) Statuses() string {
	var list []string
	for _, s := range run.BatchStatuses() {
		list = append(list, "'"+string(s)+"'")
	}
	return strings.Join(list, ", ")
}

// listWords say what is listed, and which runs are kept.
type listWords struct {
	RunWords
	ByRun, ByStatus, ByOutcome, Ended bool
}

// RunDialect is an engine.
type RunDialect struct {
	Dialect
	RunWords RunWords
	// Key makes the parameter of a batch's id, a document's key or a status: a text that its column holds byte by byte.
	Key func(text string) any
}

// RunStore is run.Store on a database. It is safe for concurrent use. In every call rows are touched in one order: run, job,
// batch_item, worker, error_detail, audit_log; rows of one table in that of their keys.
type RunStore struct {
	statements
	key func(text string) any
}

var _ run.Store = (*RunStore)(nil)

// NewRuns makes the store of an engine. It asks the database nothing.
func NewRuns(d RunDialect) *RunStore {
	texts, err := RunTexts(d.RunWords)
	if err != nil {
		panic("sqlstore: " + err.Error()) // the templates and what they name are constant
	}
	return &RunStore{statements: statements{d: d.Dialect, texts: texts}, key: d.Key}
}

// The statements of which one file makes several: a plan for each.
const (
	stBatchesOfRun          = "jobs_of_run"
	stBatchesOfRunByStatus  = "jobs_of_run_by_status"
	stBatchesLatest         = "jobs_latest"
	stBatchesLatestByStatus = "jobs_latest_by_status"
	stBatchesList           = "jobs_list"
	stItems                 = "items_page"
	stItemsByOutcome        = "items_page_by_outcome"
	stRunLease              = "run_lease"
	stRunLeaseEnded         = "run_hold_ended"
)

// RunTexts are the statements by name (the file's name without .sql).
func RunTexts(w RunWords) (map[string]string, error) {
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
		if texts[name], err = produced(t, name, listWords{RunWords: w}); err != nil {
			return nil, err
		}
	}
	for name, of := range map[string]struct {
		file string
		data listWords
	}{
		stBatchesOfRun:          {stBatchesList, listWords{RunWords: w, ByRun: true}},
		stBatchesOfRunByStatus:  {stBatchesList, listWords{RunWords: w, ByRun: true, ByStatus: true}},
		stBatchesLatest:         {stBatchesList, listWords{RunWords: w}},
		stBatchesLatestByStatus: {stBatchesList, listWords{RunWords: w, ByStatus: true}},
		stItemsByOutcome:        {stItems, listWords{RunWords: w, ByOutcome: true}},
		stRunLeaseEnded:         {stRunLease, listWords{RunWords: w, Ended: true}},
	} {
		if texts[name], err = produced(t, of.file, of.data); err != nil {
			return nil, err
		}
	}
	return texts, nil
}

// changedErr is the answer to a change that comes too late.
func changedErr(op, reason string) error {
	return &fault.Error{Kind: fault.Contention, Condition: fault.Changed, Code: "changed", Op: op, Reason: reason}
}

// one makes an error of a change that found no row.
func one(n int64, err error, op, reason string) error {
	if err == nil && n == 0 {
		return changedErr(op, reason)
	}
	return err
}

// Reasons of changes that came too late.
const (
	runLeaseLost   = "the run is not this manager's any more"
	batchLeaseLost = "the batch is not this worker's any more"
)

// millis is a duration as the statements take it: whole milliseconds that fit an int, because that is what DATEADD adds.
func millis(name string, d time.Duration) sql.NamedArg {
	return sql.Named(name, min(max(0, d.Milliseconds()), int64(math.MaxInt32)))
}

// rows makes the one JSON parameter of a list.
func (s *RunStore) rows(list [][]any) (sql.NamedArg, error) {
	var b strings.Builder
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false) // no page reads it
	if err := e.Encode(list); err != nil {
		return sql.NamedArg{}, fault.Wrap(fault.Internal, opEncode, "encode", "the rows cannot be sent", err)
	}
	return sql.Named("rows", s.d.Long(b.String())), nil
}

// execRows runs a statement for a list, maxRows of it at a time.
func (s *RunStore) execRows(ctx context.Context, tx *sql.Tx, name string, list [][]any, args ...any) (changed int64, err error) {
	for part := range slices.Chunk(list, maxRows) {
		rows, err := s.rows(part)
		if err != nil {
			return 0, err
		}
		n, err := s.exec(ctx, tx, name, append(slices.Clip(args), rows)...)
		if err != nil {
			return 0, err
		}
		changed += n
	}
	return changed, nil
}

// readTexts reads a query of one text.
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

// audit writes entries, which are as they are kept. Their texts travel as they are, each entry by itself: what people write
// is not worth a list.
func (s *RunStore) audit(ctx context.Context, tx *sql.Tx, kept ...run.Audit) error {
	for _, a := range kept {
		_, err := s.exec(ctx, tx, "audit_add", s.environment(), sql.Named("action", a.Code), sql.Named("by", a.By), sql.Named("why", a.Why),
			sql.Named("subject", cmp.Or(a.Batch, a.Run)), sql.Named("detail", s.d.Long(string(a.Detail))),
			sql.Named("level", s.key(a.Level)), sql.Named("run", a.Run), sql.Named("job", s.key(a.Batch)))
		if err != nil {
			return err
		}
	}
	return nil
}

// orNull is a text, or NULL for none.
func orNull(text string) any {
	if text == "" {
		return nil
	}
	return text
}

// normalizedAudit is the entry as it is kept; the rules are those of ops.Audit.
func normalizedAudit(a run.Audit) (run.Audit, error) {
	k, err := ops.Audit{Action: a.Code, By: a.By, Why: a.Why, Detail: a.Detail}.Normalize()
	if err != nil {
		return run.Audit{}, err
	}
	return run.Audit{
		Code: k.Action, Level: a.Level, By: k.By, Why: k.Why, Run: a.Run, Batch: a.Batch, Detail: k.Detail,
	}, nil
}

// normalizedAudits are entries as they are kept.
func normalizedAudits(audits []run.Audit) ([]run.Audit, error) {
	kept := make([]run.Audit, len(audits))
	for i, a := range audits {
		var err error
		if kept[i], err = normalizedAudit(a); err != nil {
			return nil, err
		}
	}
	return kept, nil
}

// begin makes the row of a worker that claimed something.
func (s *RunStore) begin(ctx context.Context, tx *sql.Tx, kind string, w run.Worker, runID, job string) error {
	_, err := s.exec(ctx, tx, "worker_begin", sql.Named("owner", w.ID), sql.Named("kind", kind), sql.Named("instance", ops.Truncate(w.Instance, ops.MaxBy)),
		sql.Named("run", runID), sql.Named("job", s.key(job)))
	return err
}

// The kinds of workers.
const (
	kindManager = "manager"
	kindWorker  = "worker"
)

// end gives a running worker its next status. Nobody is nobody.
func (s *RunStore) end(ctx context.Context, tx *sql.Tx, worker string, status run.WorkerStatus) error {
	if worker == "" {
		return nil
	}
	_, err := s.exec(ctx, tx, "worker_end", sql.Named("owner", worker), sql.Named("status", string(status)))
	return err
}

// beat notes that a worker lives.
func (s *RunStore) beat(ctx context.Context, tx *sql.Tx, worker string) error {
	_, err := s.exec(ctx, tx, "worker_beat", sql.Named("owner", worker))
	return err
}

// claimant refuses a worker without a name: an owner that is empty is none.
func claimant(op string, w run.Worker) error {
	if w.ID == "" || len(w.ID) > ops.MaxRunID {
		return fault.New(fault.Internal, op, "worker", "expected a worker's id of 1 to %d bytes, found %d", ops.MaxRunID, len(w.ID))
	}
	return nil
}
