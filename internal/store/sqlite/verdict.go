package sqlite

import (
	"context"
	"database/sql"
	"fmt"

	"sqlwriter/internal/commit"
	"sqlwriter/internal/fault"
	"sqlwriter/internal/invoice"
	"sqlwriter/internal/store/shared"
)

// noEvidence is the verdict of verdict.sql for a line without evidence.
const noEvidence = "none"

// verdicts returns the verdict on every line. If the ledger shows this write for all lines, it reads no more.
func (r *request) verdicts(ctx context.Context) (*commit.OutcomeBuilder, error) {
	t, lines, stamped := commit.NewOutcomeBuilder(r.mapping, r.items), 0, 0
	for _, it := range r.items {
		lines += it.Rows()
	}
	if err := r.statement(stStamped).QueryRowContext(ctx).Scan(&stamped); err != nil {
		return nil, classify("sqlite: apply: "+stStamped, err)
	}
	if err := r.after(ctx, stStamped); err != nil {
		return nil, err
	}
	if stamped == lines {
		t.AllApplied()
		return t, nil
	}
	for _, name := range []string{stLedgerRaise, stVerdict} {
		if _, err := r.exec(ctx, name); err != nil {
			return nil, err
		}
	}
	rows, err := r.statement(stOutcomes).QueryContext(ctx)
	if err != nil {
		return nil, classify("sqlite: apply: "+stOutcomes, err)
	}
	defer func() { _ = rows.Close() }() // a failure is in rows.Err
	for rows.Next() {
		v, err := r.scanVerdict(rows)
		if err != nil {
			return nil, err
		}
		t.Add(v)
	}
	if err := rows.Err(); err != nil {
		return nil, classify("sqlite: apply: "+stOutcomes, err)
	}
	return t, r.after(ctx, stOutcomes)
}

func (r *request) scanVerdict(rows *sql.Rows) (commit.LineVerdict, error) {
	var v commit.LineVerdict
	var by sql.NullString
	var key shared.Hash
	var us sql.NullInt64
	if err := rows.Scan(&v.Item, &v.Position, &v.Verdict, &v.Winner, &by, &us, &key); err != nil {
		return v, classify("sqlite: apply: "+stOutcomes, fmt.Errorf("scan: %w", err))
	}
	if it := r.items[v.Item]; v.Verdict == noEvidence {
		return v, fault.New(fault.Contention, "sqlite: apply", "verdict_without_evidence",
			"document %s, line %d: the ledger shows neither this write nor this content nor anything newer",
			it.DocumentID, it.Line(v.Position))
	}
	v.By, v.Version = by.String, invoice.Version{US: us.Int64, Key: string(key)}
	return v, nil
}

// currentValues reads the values that the lines of the request have now.
func (r *request) currentValues(ctx context.Context) (map[int64][]invoice.Value, error) {
	rows, err := r.statement(stPreviewBefore).QueryContext(ctx)
	if err != nil {
		return nil, classify("sqlite: preview", err)
	}
	defer func() { _ = rows.Close() }() // a failure is in rows.Err
	out := map[int64][]invoice.Value{}
	for rows.Next() {
		var line int64
		texts := make([]sql.NullString, len(r.mapping.Columns()))
		to := make([]any, 0, len(texts)+1)
		to = append(to, &line)
		for i := range texts {
			to = append(to, &texts[i])
		}
		if err := rows.Scan(to...); err != nil {
			return nil, classify("sqlite: preview", err)
		}
		values := make([]invoice.Value, len(texts))
		for i, s := range texts {
			values[i] = invoice.Value{Null: !s.Valid, Text: s.String}
		}
		out[line] = values
	}
	if err := rows.Err(); err != nil {
		return nil, classify("sqlite: preview", err)
	}
	return out, nil
}
