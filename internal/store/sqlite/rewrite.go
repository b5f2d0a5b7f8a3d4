package sqlite

import (
	"context"
	"database/sql"
	"fmt"

	"sqlwriter/internal/invoice"
	"sqlwriter/internal/store/shared"
)

// compared is a line of a rewrite.
type compared struct {
	line    int64
	item    int
	verdict invoice.Outcome
	// keepStatus keeps the status of the line's rows.
	keepStatus bool
}

// leaveAlone takes edited lines, and those that are not comparable, out of a rewrite. The transaction has the
// database's only write lock, so nobody can edit a line after that.
func (r *request) leaveAlone(ctx context.Context) error {
	lines, err := r.compare(ctx)
	if err != nil {
		return err
	}
	for _, l := range lines {
		if _, err := r.exec(ctx, stRewriteLine, l.line, l.item, string(l.verdict), l.keepStatus); err != nil {
			return err
		}
	}
	return r.after(ctx, stRewriteRead)
}

// compare reads the lines that are left alone or keep their status.
func (r *request) compare(ctx context.Context) ([]compared, error) {
	const op = "sqlite: apply: " + stRewriteRead
	rows, err := r.statement(stRewriteRead).QueryContext(ctx, r.releases()...)
	if err != nil {
		return nil, classify(op, err)
	}
	defer func() { _ = rows.Close() }() // a failure is in rows.Err
	var lines []compared
	for rows.Next() {
		l, p, err := r.scanPresent(rows)
		if err != nil {
			return nil, classify(op, err)
		}
		it := r.items[l.item]
		if l.verdict = p.LeftAlone(it, l.line); l.verdict == "" {
			l.verdict = invoice.OutcomeApplied
		}
		l.keepStatus = (l.keepStatus || p.Has(it)) && !it.Overwrites(l.line)
		lines = append(lines, l)
	}
	return lines, classify(op, rows.Err())
}

func (r *request) scanPresent(rows *sql.Rows) (l compared, p shared.Present, err error) {
	columns := r.mapping.Columns()
	var position int
	var version sql.NullInt64
	var content, detail, tracking shared.Hash
	texts := make([]sql.NullString, len(columns))
	to := []any{&l.item, &position, &l.keepStatus, &content, &version, &detail, &tracking, &p.Tracked}
	for i := range texts {
		to = append(to, &texts[i])
	}
	if err := rows.Scan(to...); err != nil {
		return l, p, fmt.Errorf("scan: %w", err)
	}
	p.Recipe, p.Hash = r.recipes[int(version.Int64)], string(content)
	p.DetailHash, p.TrackingHash = string(detail), string(tracking)
	p.Values = make([]invoice.Value, len(columns))
	for i, c := range columns {
		p.Values[i] = storedValue(c, texts[i])
	}
	it := r.items[l.item]
	l.line = it.Line(position)
	p.Want = r.mapping.RowValues(it.Values, it.Main, l.line)
	return l, p, nil
}

// storedValue is a column's value as the document gave it. A column with the affinity of a number stores "0.9500" as
// 0.95.
func storedValue(c invoice.Column, text sql.NullString) invoice.Value {
	if !text.Valid {
		return invoice.Null()
	}
	if c.Kind == invoice.Decimal {
		if v, err := shared.Decimal(c, text.String); err == nil {
			return v
		}
	}
	return invoice.Of(text.String)
}
