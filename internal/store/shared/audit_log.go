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

// The statements of the audit log, named after their files.
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

// Dialect is the SQL syntax in which the engines differ. All engines take named parameters (@id).
type Dialect struct {
	// Run and AuditLog are names of tables.
	Run, AuditLog string
	// Now is the time of the database's clock, in UTC and with milliseconds or finer.
	Now string
	// LockTimeout is how many milliseconds a write waits for a lock. A value other than 0 also makes an error roll
	// back the whole transaction. It is 0 on an engine that takes the limit when it opens the database.
	LockTimeout int64
	// Top and Limit bound a query to @limit rows. Each engine sets one of them and leaves the other empty.
	Top, Limit string
	// BinaryCollation follows a text to have it compared byte by byte. It is empty on an engine that always does so.
	BinaryCollation string
}

// Engine is a database as the statements use it.
type Engine struct {
	Dialect
	// Name begins the operation of every error, for example "sqlite".
	Name string
	// SysName is the environment. Several environments may share the tables.
	SysName string
	// Write runs the changes. Read runs the queries and sees committed rows only.
	Write, Read *sql.DB
	// Long makes the parameter of a text that may be very long.
	Long func(text string) any
	// Classify makes a *fault.Error of a driver's error, never of kind document. It returns nil and a *fault.Error
	// unchanged. A duplicate key is contention with the condition OwnWhenAlone.
	Classify func(op string, err error) error
}

// AuditLog implements ops.AuditLog on a database. It is safe for concurrent use.
type AuditLog struct{ statements }

// NewAuditLog makes the audit log of an engine without using the database.
func NewAuditLog(e Engine) *AuditLog {
	texts, err := AuditLogTexts(e.Dialect)
	if err != nil {
		panic("shared: " + err.Error()) // the templates and their data are constant
	}
	return &AuditLog{statements{engine: e, texts: texts}}
}

// AuditLogTexts returns the statements by name (the file's name without .sql).
func AuditLogTexts(d Dialect) (map[string]string, error) {
	t, err := template.New("").Option("missingkey=error").ParseFS(auditLogFiles, "auditlog/*.sql")
	if err != nil {
		return nil, fmt.Errorf("parse: %w", err)
	}
	texts := map[string]string{}
	data := struct {
		Dialect
		PeopleCodes, Sorts []string
	}{d, ops.PeopleCodes(), notableSorts()}
	for _, name := range []string{
		stAuditInsert, stRunInsert, stRunProgress, stRunWanted, stRunEnd, stRunCancel, stAudits, stNotable, stAuditsOfRun, stOfAction,
	} {
		if texts[name], err = render(t, name, data); err != nil {
			return nil, err
		}
	}
	return texts, nil
}

// notableSorts lists the conditions of ops.Audit.Notable. No entry meets two of them, and each can use an index of
// the table.
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
	return j.engine.Classify(op, j.audit(ctx, j.engine.Write, a))
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
			sql.Named("filter", j.engine.Long(string(r.Filter))), sql.Named("matched", int64(r.Matched)), sql.Named("at_least", boolInt(r.AtLeast)),
			sql.Named("by", r.RequestedBy), sql.Named("why", r.Why), sql.Named("counts", j.engine.Long(counts)))
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
	n, err := j.exec(ctx, j.engine.Write, stRunProgress, sql.Named("id", id), j.environment(), sql.Named("counts", j.engine.Long(text)))
	if err != nil {
		return false, j.engine.Classify(op, err)
	}
	if n == 0 {
		return false, noRun(op, id)
	}
	err = j.engine.Read.QueryRowContext(ctx, j.texts[stRunWanted], sql.Named("id", id)).Scan(&cancel)
	if errors.Is(err, sql.ErrNoRows) {
		return false, noRun(op, id)
	}
	return cancel, j.engine.Classify(op, err)
}

// End implements ops.AuditLog. A status that does not end a run is internal, code "status".
func (j *AuditLog) End(ctx context.Context, id string, status ops.RunStatus, counts map[string]int) error {
	op := j.op("end run")
	if !status.Last() {
		return fault.New(fault.Internal, op, "status", "expected a status that ends a run, found %q", status)
	}
	text, err := countsText(op, counts)
	if err != nil {
		return err
	}
	_, err = j.exec(ctx, j.engine.Write, stRunEnd, sql.Named("id", id), j.environment(), sql.Named("status", string(status)), sql.Named("counts", j.engine.Long(text)))
	return j.engine.Classify(op, err)
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
		args = append(args, sql.Named("run", q.Run), sql.Named("action", q.Action), sql.Named("all", boolInt(q.All || q.Action != "")))
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

// audit adds a normalized entry.
func (j *AuditLog) audit(ctx context.Context, db execer, a ops.Audit) error {
	_, err := j.exec(ctx, db, stAuditInsert, j.environment(), sql.Named("action", a.Action), sql.Named("by", a.By), sql.Named("why", a.Why),
		sql.Named("subject", a.Subject), sql.Named("run", a.Run), sql.Named("detail", j.engine.Long(string(a.Detail))))
	return err
}

// rawOf returns JSON as it was written, or nil for NULL.
func rawOf(text sql.NullString) json.RawMessage {
	if !text.Valid {
		return nil
	}
	return json.RawMessage(text.String)
}

// countsText encodes counts for their column, which always has an object.
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
