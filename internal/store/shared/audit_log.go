package shared

import (
	"context"
	"database/sql"
	"embed"
	"encoding/json"
	"fmt"
	"math"
	"strings"
	"text/template"

	"sqlwriter/internal/ops"
)

//go:embed auditlog/*.sql
var auditLogFiles embed.FS

// The statements of the audit log.
const (
	stAuditInsert   = "audit_insert"
	stAudits        = "audits"
	stNotable       = "audits_notable"
	stNotableOfRun  = "audits_notable_of_run"
	stAuditsOfRun   = "audits_of_run"
	stOfAction      = "audits_of_action"
	stOfActionOfRun = "audits_of_action_of_run"
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
	// NoIndex, before a column, keeps the engine from using the column's index.
	NoIndex string
}

// auditsData selects the variants of a list.
type auditsData struct {
	Dialect
	Notable, ByRun, ByAction bool
}

// PeopleCodes lists the codes that are notable at any level, for IN.
func (auditsData) PeopleCodes() string { return "'" + strings.Join(ops.PeopleCodes(), "', '") + "'" }

// Engine is a database as the statements use it.
type Engine struct {
	Dialect
	// Name begins the operation of every error, for example "sqlite".
	Name string
	// SysName is the environment. Several environments may share the tables.
	SysName string
	// Write runs the changes. Read runs the queries and sees committed rows only.
	Write, Read *sql.DB
	// Bind makes the parameter of a text.
	Bind func(t ParameterType, text string) any
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
	if texts[stAuditInsert], err = render(t, stAuditInsert, d); err != nil {
		return nil, err
	}
	for name, of := range map[string]auditsData{
		stAudits:        {},
		stNotable:       {Notable: true},
		stNotableOfRun:  {Notable: true, ByRun: true},
		stAuditsOfRun:   {ByRun: true},
		stOfAction:      {ByAction: true},
		stOfActionOfRun: {ByAction: true, ByRun: true},
	} {
		of.Dialect = d
		if texts[name], err = render(t, stAudits, of); err != nil {
			return nil, err
		}
	}
	return texts, nil
}

// Write implements ops.AuditLog.
func (j *AuditLog) Write(ctx context.Context, a ops.Audit) error {
	op := j.op("write audit")
	a, err := a.Normalize()
	if err != nil {
		return err
	}
	_, err = j.exec(ctx, j.engine.Write, stAuditInsert, j.environment(), sql.Named("action", a.Action), sql.Named("by", a.By), sql.Named("why", a.Why),
		sql.Named("subject", a.Subject), sql.Named("run", a.Run), sql.Named("detail", string(a.Detail)))
	return j.engine.Classify(op, err)
}

// Audits implements ops.AuditLog.
func (j *AuditLog) Audits(ctx context.Context, q ops.AuditQuery) ([]ops.Audit, error) {
	before := int64(math.MaxInt64)
	if q.Before > 0 {
		before = q.Before
	}
	statement, args := stNotable, []any{j.environment(), sql.Named("before", before)}
	switch {
	case q.Run != "" && q.Action != "":
		statement, args = stOfActionOfRun, append(args, sql.Named("run", q.Run), sql.Named("action", q.Action))
	case q.Run != "" && q.All:
		statement, args = stAuditsOfRun, append(args, sql.Named("run", q.Run))
	case q.Run != "":
		statement, args = stNotableOfRun, append(args, sql.Named("run", q.Run))
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
		if err := rows.Scan(&a.ID, &at, &level, &a.Action, &a.By, &a.Why, &a.Subject, &runID, &batch, &detail); err != nil {
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

// rawOf returns JSON as it was written, or nil for NULL.
func rawOf(text sql.NullString) json.RawMessage {
	if !text.Valid {
		return nil
	}
	return json.RawMessage(text.String)
}
