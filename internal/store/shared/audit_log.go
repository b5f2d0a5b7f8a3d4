package shared

import (
	"context"
	"database/sql"
	"embed"
	"encoding/json"
	"errors"
	"fmt"
	"text/template"

	"sqlwriter/internal/fault"
	"sqlwriter/internal/ops"
	"sqlwriter/internal/run"
)

//go:embed auditlog/*.sql
var auditLogFiles embed.FS

// The statements of the journal: the files' names.
const (
	stAuditInsert = "audit_insert"
	stRunInsert   = "run_insert"
	stRunProgress = "run_progress"
	stRunWanted   = "run_wanted"
	stRunEnd      = "run_end"
	stRunCancel   = "run_cancel"
	stAudits      = "audits"
	stNotable     = "audits_notable"
	stAuditsOfRun = "audits_of_run"
	stOfAction    = "audits_of_action"
)

// Words are what the statements of the journal say differently from engine to engine. Parameters are named, @id, in
// both.
type Words struct {
	// Run and AuditLog are the tables.
	Run, AuditLog string
	// Now is the database's clock, UTC, in milliseconds or finer.
	Now string
	// LockTimeout, where it is not 0, is how many milliseconds a statement that writes waits for a lock, and says that an
	// error must undo its whole transaction. Other engines are told so when the database is opened.
	LockTimeout int64
	// Top and Limit bound a query to @limit rows, where the dialect wants it: one of them is empty.
	Top, Limit string
	// Bytes, behind a text, has it compared byte by byte, where a column or a list is of the database's own collation.
	Bytes string
}

// Dialect is an engine.
type Dialect struct {
	Words
	// Name begins the operation of every error: "sqlite".
	Name string
	// SysName is the environment; the tables may be shared.
	SysName string
	// Write has the connections that write; Read those that read, and sees what was committed.
	Write, Read *sql.DB
	// Long makes the parameter of a text that may be very long.
	Long func(text string) any
	// Classify makes a *fault.Error of whatever the driver answers, never a document's: nothing here concerns one. An error
	// that is one stays as it is, and nil stays nil. A key that is there already is contention, condition OwnWhenAlone.
	Classify func(op string, err error) error
}

// AuditLog is ops.AuditLog on a database. It is safe for concurrent use.
type AuditLog struct{ statements }

// NewAuditLog makes the journal of an engine. It asks the database nothing.
func NewAuditLog(d Dialect) *AuditLog {
	texts, err := AuditLogTexts(d.Words)
	if err != nil {
		panic("sqlstore: " + err.Error()) // the templates and what they name are constant
	}
	return &AuditLog{statements{d: d, texts: texts}}
}

// AuditLogTexts are the statements by name (the file's name without .sql).
func AuditLogTexts(w Words) (map[string]string, error) {
	t, err := template.New("").Option("missingkey=error").ParseFS(auditLogFiles, "auditlog/*.sql")
	if err != nil {
		return nil, fmt.Errorf("parse: %w", err)
	}
	texts := map[string]string{}
	data := struct {
		Words
		PeopleCodes, Sorts []string
	}{w, ops.PeopleCodes(), notableSorts()}
	for _, name := range []string{
		stAuditInsert, stRunInsert, stRunProgress, stRunWanted, stRunEnd, stRunCancel, stAudits, stNotable, stAuditsOfRun, stOfAction,
	} {
		if texts[name], err = produced(t, name, data); err != nil {
			return nil, err
		}
	}
	return texts, nil
}

// notableSorts are the conditions of ops.Audit.Notable. No entry meets two of them, and each is the head of an index of the table.
func notableSorts() []string {
	sorts := []string{"b.level IS NULL", "b.level = '" + run.LevelWarn + "'", "b.level = '" + run.LevelError + "'"}
	for _, code := range ops.PeopleCodes() {
		sorts = append(sorts, "b.action = '"+code+"' AND b.level = '"+run.LevelInfo+"'")
	}
	return sorts
}

// Write implements ops.AuditLog.
func (j *AuditLog) Write(ctx context.Context, a ops.Audit) error {
	op := j.op("write audit")
	a, err := a.Normalize()
	if err != nil {
		return err
	}
	return j.d.Classify(op, j.audit(ctx, j.d.Write, a))
}

// Start implements ops.AuditLog.
func (j *AuditLog) Start(ctx context.Context, r ops.Run, a ops.Audit) error {
	op := j.op("start run")
	r, err := r.Normalize()
	if err != nil {
		return err
	}
	a.Run = r.ID
	if a, err = a.Normalize(); err != nil {
		return err
	}
	counts, err := countsText(op, r.Counts)
	if err != nil {
		return err
	}
	err = j.inTx(ctx, op, func(tx *sql.Tx) error {
		_, err := j.exec(ctx, tx, stRunInsert, sql.Named("id", r.ID), j.environment(), sql.Named("kind", r.Kind),
			sql.Named("filter", j.d.Long(string(r.Filter))), sql.Named("matched", int64(r.Matched)), sql.Named("at_least", bit(r.AtLeast)),
			sql.Named("by", r.RequestedBy), sql.Named("why", r.Why), sql.Named("counts", j.d.Long(counts)))
		if err != nil {
			return err
		}
		return j.audit(ctx, tx, a)
	})
	if fault.Has(err, fault.OwnWhenAlone) { // a run's id is the only key that the database does not choose
		return fault.New(fault.Internal, op, "run_exists", "there is a run %s already", r.ID)
	}
	return err
}

// Progress implements ops.AuditLog.
func (j *AuditLog) Progress(ctx context.Context, id string, counts map[string]int) (cancel bool, err error) {
	op := j.op("run progress")
	text, err := countsText(op, counts)
	if err != nil {
		return false, err
	}
	n, err := j.exec(ctx, j.d.Write, stRunProgress, sql.Named("id", id), j.environment(), sql.Named("counts", j.d.Long(text)))
	if err != nil {
		return false, j.d.Classify(op, err)
	}
	if n == 0 {
		return false, noRun(op, id)
	}
	err = j.d.Read.QueryRowContext(ctx, j.texts[stRunWanted], sql.Named("id", id)).Scan(&cancel)
	if errors.Is(err, sql.ErrNoRows) {
		return false, noRun(op, id)
	}
	return cancel, j.d.Classify(op, err)
}

// End implements ops.AuditLog. A status that is not a last one is internal, code "status".
func (j *AuditLog) End(ctx context.Context, id string, status ops.RunStatus, counts map[string]int) error {
	op := j.op("end run")
	if !status.Last() {
		return fault.New(fault.Internal, op, "status", "expected a last status, found %q", status)
	}
	text, err := countsText(op, counts)
	if err != nil {
		return err
	}
	_, err = j.exec(ctx, j.d.Write, stRunEnd, sql.Named("id", id), j.environment(), sql.Named("status", string(status)), sql.Named("counts", j.d.Long(text)))
	return j.d.Classify(op, err)
}

// Cancel implements ops.AuditLog.
func (j *AuditLog) Cancel(ctx context.Context, id string, a ops.Audit) (running bool, err error) {
	op := j.op("cancel run")
	a.Run = id
	if a, err = a.Normalize(); err != nil {
		return false, err
	}
	err = j.inTx(ctx, op, func(tx *sql.Tx) error {
		n, err := j.exec(ctx, tx, stRunCancel, sql.Named("id", id), j.environment())
		if err != nil || n == 0 {
			return err
		}
		running = true
		return j.audit(ctx, tx, a)
	})
	return running && err == nil, err
}

// Audits implements ops.AuditLog.
func (j *AuditLog) Audits(ctx context.Context, q ops.AuditQuery) ([]ops.Audit, error) {
	statement, args := stNotable, []any{j.environment()}
	switch {
	case q.Run != "":
		statement = stAuditsOfRun
		args = append(args, sql.Named("run", q.Run), sql.Named("action", q.Action), sql.Named("all", bit(q.All || q.Action != "")))
	case q.Action != "":
		statement, args = stOfAction, append(args, sql.Named("action", q.Action))
	case q.All:
		statement = stAudits
	}
	audits := []ops.Audit{}
	err := j.page(ctx, j.op("read audits"), statement, q.Limit, func(rows *sql.Rows) error {
		var a ops.Audit
		var at moment
		var level, runID, batch, detail sql.NullString
		if err := rows.Scan(&at, &level, &a.Action, &a.By, &a.Why, &a.Subject, &runID, &batch, &detail); err != nil {
			return err
		}
		a.At, a.Level, a.Run, a.Batch, a.Detail = at.Time, level.String, runID.String, batch.String, rawOf(detail)
		audits = append(audits, a)
		return nil
	}, args...)
	if err != nil {
		return nil, err
	}
	return audits, nil
}

// audit adds an entry that is as it is kept.
func (j *AuditLog) audit(ctx context.Context, db execer, a ops.Audit) error {
	_, err := j.exec(ctx, db, stAuditInsert, j.environment(), sql.Named("action", a.Action), sql.Named("by", a.By), sql.Named("why", a.Why),
		sql.Named("subject", a.Subject), sql.Named("run", a.Run), sql.Named("detail", j.d.Long(string(a.Detail))))
	return err
}

// rawOf is JSON as it was written; the statements make NULL of none.
func rawOf(text sql.NullString) json.RawMessage {
	if !text.Valid {
		return nil
	}
	return json.RawMessage(text.String)
}

// countsText is what the column counts holds: an object always.
func countsText(op string, counts map[string]int) (string, error) {
	if counts == nil {
		return "{}", nil
	}
	text, err := json.Marshal(counts)
	if err != nil {
		return "", fault.Wrap(fault.Internal, op, "encode", "the counts cannot be written as JSON", err)
	}
	return string(text), nil
}

func noRun(op, id string) error {
	return fault.New(fault.Internal, op, "no_run", "no run %s is running", id)
}
