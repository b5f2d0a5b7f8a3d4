package shared

import (
	"cmp"
	"context"
	"crypto/sha256"
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
		return nil, fault.Wrap(fault.Internal, opEncode, "encode", "the rows cannot be sent", err)
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
func (s *changes) execRows(ctx context.Context, tx *sql.Tx, name string, list [][]any, args ...any) (changed int64, err error) {
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

// audit writes normalized entries. It sends each entry by itself, because there are few.
func (s *changes) audit(ctx context.Context, tx *sql.Tx, normalized ...run.Audit) error {
	for _, a := range normalized {
		_, err := s.exec(ctx, tx, "audit_add", s.environment(), sql.Named("action", a.Code), sql.Named("by", a.By), sql.Named("why", a.Why),
			sql.Named("subject", cmp.Or(a.Batch, a.Run)), sql.Named("detail", string(a.Detail)),
			sql.Named("level", a.Level), sql.Named("run", a.Run), sql.Named("batch", a.Batch))
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
