package sqlserver

import (
	"context"
	"database/sql"
	"strconv"

	mssql "github.com/microsoft/go-mssqldb"

	"sqlwriter/internal/invoice"
	"sqlwriter/internal/store/shared"
)

// seen is a line of a rewrite as it was read. The write misses a line whose rows have other fingerprints by then; NULL
// is that of an absent row.
type seen struct {
	verdict          invoice.Outcome
	keepStatus       bool
	detail, tracking sql.NullInt64
}

// readLines reads the lines that a rewrite would write, and adds to the request which of them it leaves alone, and what
// the others look like.
func (s *Store) readLines(ctx context.Context, a *answer) error {
	payload, err := shared.Request(a.items, a.form)
	if err != nil {
		return err
	}
	if a.recipes, err = s.recipes(ctx); err != nil {
		return err
	}
	lines, expected := map[[2]int]seen{}, 0
	for _, it := range a.items {
		expected += it.Rows()
	}
	err = s.send(ctx, opApply, s.procedures.name(procRewriteRead), func(rows *sql.Rows) error {
		if err := skipToSet(rows, setPresent); err != nil {
			return err
		}
		for rows.Next() {
			at, line, err := a.scanSeen(rows)
			if err != nil {
				return err
			}
			lines[at] = line
			a.leavesAlone = a.leavesAlone || line.verdict != ""
		}
		return rows.Err()
	}, []any{
		sql.Named("request", mssql.NVarCharMax(payload.JSON)), sql.Named("hashes", payload.Hashes),
		sql.Named("expected", int64(expected)), sql.Named("releases", mssql.NVarCharMax(payload.Releases)),
	})
	a.form.Line = func(b []byte, doc, position int) []byte { return lines[[2]int{doc, position}].append(b) }
	return err
}

// scanSeen reads a line's item and position, and compares the line with its ledger row.
func (a *answer) scanSeen(rows *sql.Rows) (at [2]int, l seen, err error) {
	columns := a.form.Mapping.Columns()
	var known bool
	var content, detail, tracking shared.Hash
	var version sql.NullInt64
	found := make([]any, len(columns))
	to := []any{&at[0], &at[1], &l.keepStatus, &content, &known, &version, &detail, &tracking, &l.detail, &l.tracking}
	for i := range found {
		to = append(to, &found[i])
	}
	if err := rows.Scan(to...); err != nil {
		return at, l, badAnswer("lines: %v", err)
	}
	it := a.items[at[0]]
	line := it.Line(at[1])
	values, err := canonicalRow(line, columns, found)
	if err != nil || !known {
		return at, l, err
	}
	present := shared.Present{
		Recipe: a.recipes[int(version.Int64)], Hash: string(content), DetailHash: string(detail),
		TrackingHash: string(tracking),
		Tracked:      l.tracking.Valid, Values: a.form.Stored(values),
		Want: a.form.Stored(a.form.Mapping.RowValues(it.Values, it.Main, line)),
	}
	l.verdict = present.LeftAlone(it, line)
	l.keepStatus = (l.keepStatus || present.Has(it)) && !it.Overwrites(line)
	return at, l, nil
}

// append adds the last members of a line to a request: see load.sql.
func (l seen) append(b []byte) []byte {
	switch l.verdict {
	case "":
		b = append(b, ",null"...)
	default:
		b = append(b, `,"`+string(l.verdict)+`"`...)
	}
	if l.keepStatus {
		b = append(b, ",1"...)
	} else {
		b = append(b, ",0"...)
	}
	for _, fingerprint := range []sql.NullInt64{l.detail, l.tracking} {
		b = append(b, ',')
		if !fingerprint.Valid {
			b = append(b, "null"...)
			continue
		}
		b = strconv.AppendInt(append(b, '"'), fingerprint.Int64, 10)
		b = append(b, '"')
	}
	return b
}
