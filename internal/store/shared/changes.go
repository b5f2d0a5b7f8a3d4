package shared

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/json"
	"slices"
	"strings"

	"sqlwriter/internal/fault"
	"sqlwriter/internal/run"
)

// maxRows is the most rows that a statement writes.
const maxRows = 100

// changes are statements that also write lists of rows and entries of the audit log. AuditLog, RunStore and Findings
// embed it.
type changes struct{ statements }

// rowsArgs makes the parameters of a list: its JSON, and the hashes that the JSON names by their places.
func rowsArgs(list [][]any) ([]any, error) {
	var hashes hashList
	sent := make([][]any, len(list))
	for i, row := range list {
		sent[i] = slices.Clone(row)
		for j, v := range row {
			if h, ok := v.(Hash); ok {
				place, err := hashes.add(h)
				if err != nil {
					return nil, err
				}
				sent[i][j] = place
			}
		}
	}
	var b strings.Builder
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false) // it is not shown in HTML
	if err := e.Encode(sent); err != nil {
		return nil, fault.Wrap(fault.Internal, opEncode, fault.CodeBug, "the rows cannot be sent", err)
	}
	args := []any{sql.Named("rows", b.String())}
	if len(hashes) > 0 {
		// A server keeps one plan for each length of the parameter.
		padded := append(hashes, make([]byte, max(0, maxRows*sha256.Size-len(hashes)))...)
		args = append(args, sql.Named("hashes", []byte(padded)))
	}
	return args, nil
}

// execRows runs a statement for a list, maxRows rows at a time.
func (s *changes) execRows(
	ctx context.Context, tx *sql.Tx, name string, list [][]any, args ...any,
) (changed int64, err error) {
	for part := range slices.Chunk(list, maxRows) {
		rows, err := rowsArgs(part)
		if err != nil {
			return 0, err
		}
		n, err := s.exec(ctx, tx, name, append(slices.Clip(args), rows...)...)
		if err != nil {
			return 0, err
		}
		changed += n
	}
	return changed, nil
}

// Write implements run.Store and ops.AuditLog.
func (s *changes) Write(ctx context.Context, a run.Audit) error {
	return s.engine.Classify(s.op("write audit"), s.audit(ctx, s.engine.Write, a))
}

// audit adds entries. It sends each entry by itself, because there are few.
func (s *changes) audit(ctx context.Context, db execer, audits ...run.Audit) error {
	for _, a := range audits {
		a, err := a.Normalize()
		if err != nil {
			return err
		}
		_, err = s.exec(ctx, db, "audit_insert", s.environment(), sql.Named("action", a.Action), sql.Named("by", a.By),
			sql.Named("why", a.Why),
			sql.Named("subject", a.Subject), sql.Named("detail", string(a.Detail)), sql.Named("level", a.Level),
			sql.Named("run", a.Run),
			sql.Named("batch", a.Batch))
		if err != nil {
			return err
		}
	}
	return nil
}

// Marks implements ops.AuditLog and reconcile.Findings. The engine may compare texts without regard to case; the ids of
// the result are exact.
func (s *changes) Marks(ctx context.Context, documents []string) (map[run.Mark]run.Audit, error) {
	marks := map[run.Mark]run.Audit{}
	for part := range slices.Chunk(documents, maxRows) {
		ids := make([][]any, len(part))
		for i, id := range part {
			ids[i] = []any{id}
		}
		args, err := rowsArgs(ids)
		if err != nil {
			return nil, err
		}
		err = s.each(ctx, s.engine.Read, "marks", func(rows *sql.Rows) error {
			a := run.Audit{Action: run.CodeMarkCommitted}
			var at moment
			var detail sql.NullString
			err := rows.Scan(&a.Subject, &at, &a.By, &a.Why, &detail)
			if a.At, a.Detail = at.Time, rawOf(detail); slices.Contains(part, a.Subject) {
				marks[a.Mark()] = a
			}
			return err
		}, append(args, s.environment())...)
		if err != nil {
			return nil, s.engine.Classify(s.op("read marks"), err)
		}
	}
	return marks, nil
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
