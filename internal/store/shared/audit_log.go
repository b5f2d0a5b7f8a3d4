package shared

import (
	"context"
	"database/sql"
	"encoding/json"
	"math"

	"sqlwriter/internal/ops"
	"sqlwriter/internal/run"
)

// The statements of the audit log.
const (
	stAudits        = "audits"
	stNotable       = "audits_notable"
	stNotableOfRun  = "audits_notable_of_run"
	stAuditsOfRun   = "audits_of_run"
	stOfAction      = "audits_of_action"
	stOfActionOfRun = "audits_of_action_of_run"
)

// AuditLog implements ops.AuditLog on a database. It is safe for concurrent use.
type AuditLog struct{ changes }

// NewAuditLog makes the audit log of an engine without using the database.
func NewAuditLog(e Engine) *AuditLog { return &AuditLog{changes{e.statements(OfAuditLog)}} }

// Audits implements ops.AuditLog.
func (j *AuditLog) Audits(ctx context.Context, q ops.AuditQuery) ([]run.Audit, error) {
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
	audits := []run.Audit{}
	err := j.page(ctx, j.op("read audits"), statement, q.Limit, func(rows *sql.Rows) error {
		var a run.Audit
		var at moment
		var level, runID, batch, detail sql.NullString
		if err := rows.Scan(&a.ID, &at, &level, &a.Action, &a.By, &a.Why, &a.Subject, &runID,
			&batch, &detail); err != nil {
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
