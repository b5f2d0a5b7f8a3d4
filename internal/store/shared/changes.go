package shared

import (
	"cmp"
	"context"
	"database/sql"
	"encoding/json"
	"slices"
	"strings"

	"sqlwriter/internal/fault"
	"sqlwriter/internal/ops"
	"sqlwriter/internal/run"
)

// maxRows is the most rows that a statement writes.
const maxRows = 100

// changes are statements that also write lists of rows and entries of the audit log. RunStore and Findings embed it.
type changes struct {
	statements
	key func(text string) any
}

// rowsArg makes the JSON parameter of a list.
func (s *changes) rowsArg(list [][]any) (sql.NamedArg, error) {
	var b strings.Builder
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false) // it is not shown in HTML
	if err := e.Encode(list); err != nil {
		return sql.NamedArg{}, fault.Wrap(fault.Internal, opEncode, "encode", "the rows cannot be sent", err)
	}
	return sql.Named("rows", s.engine.Long(b.String())), nil
}

// execRows runs a statement for a list, maxRows rows at a time.
func (s *changes) execRows(ctx context.Context, tx *sql.Tx, name string, list [][]any, args ...any) (changed int64, err error) {
	for part := range slices.Chunk(list, maxRows) {
		rows, err := s.rowsArg(part)
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

// audit writes normalized entries. It sends each entry by itself, because there are few.
func (s *changes) audit(ctx context.Context, tx *sql.Tx, normalized ...run.Audit) error {
	for _, a := range normalized {
		_, err := s.exec(ctx, tx, "audit_add", s.environment(), sql.Named("action", a.Code), sql.Named("by", a.By), sql.Named("why", a.Why),
			sql.Named("subject", cmp.Or(a.Batch, a.Run)), sql.Named("detail", s.engine.Long(string(a.Detail))),
			sql.Named("level", s.key(a.Level)), sql.Named("run", a.Run), sql.Named("job", s.key(a.Batch)))
		if err != nil {
			return err
		}
	}
	return nil
}

// normalizedAudit applies the rules of ops.Audit to an entry.
func normalizedAudit(a run.Audit) (run.Audit, error) {
	normalized, err := ops.Audit{Action: a.Code, By: a.By, Why: a.Why, Detail: a.Detail}.Normalize()
	if err != nil {
		return run.Audit{}, err
	}
	return run.Audit{
		Code: normalized.Action, Level: a.Level, By: normalized.By, Why: normalized.Why, Run: a.Run, Batch: a.Batch, Detail: normalized.Detail,
	}, nil
}

func normalizedAudits(audits []run.Audit) ([]run.Audit, error) {
	normalized := make([]run.Audit, len(audits))
	for i, a := range audits {
		var err error
		if normalized[i], err = normalizedAudit(a); err != nil {
			return nil, err
		}
	}
	return normalized, nil
}

// changedErr is the error of a change whose condition no longer holds.
func changedErr(op, reason string) error {
	return &fault.Error{Kind: fault.Contention, Condition: fault.Changed, Code: "changed", Op: op, Reason: reason}
}

// requireRow adds an error for a change that found no row.
func requireRow(n int64, err error, op, reason string) error {
	if err == nil && n == 0 {
		return changedErr(op, reason)
	}
	return err
}
