package sqlserver

import (
	"database/sql"
	"fmt"

	"sqlwriter/internal/fault"
	"sqlwriter/internal/invoice"
	"sqlwriter/internal/writer"
)

// answer is what outcomes.sql says, by document.
type answer struct {
	items    []writer.Item
	columns  []invoice.Column
	mode     writer.Mode
	outcomes []writer.Outcome
	// newest is the version of each outcome's SupersededBy.
	newest []invoice.Version
	// wins has, for each line written by this request, the item that won it.
	wins map[int64]int
}

// read takes in the result sets.
func (a *answer) read(rows *sql.Rows) error {
	a.outcomes, a.newest, a.wins = make([]writer.Outcome, len(a.items)), make([]invoice.Version, len(a.items)), map[int64]int{}
	lines, stamped, err := counts(rows)
	if err != nil {
		return err
	}
	expected := 0
	for _, it := range a.items {
		expected += it.Rows()
	}
	if lines != expected {
		return fault.New(fault.Internal, opApply, "line_count", "expected %d lines staged, found %d", expected, lines)
	}
	if stamped == lines {
		a.allApplied()
	} else if err := a.eachLine(rows); err != nil {
		return err
	}
	for doc := range a.outcomes {
		it, o := a.items[doc], &a.outcomes[doc]
		if len(o.Rows) != it.Rows() {
			return fault.New(fault.Internal, opApply, "verdict_count",
				"document %s: expected %d verdicts, found %d", it.DocumentID, it.Rows(), len(o.Rows))
		}
		o.DocumentID, o.Verdict = it.DocumentID, draw(it, o.Rows)
	}
	if a.mode == writer.Preview {
		return a.beforeAndAfter(rows)
	}
	return nil
}

// counts reads the first result set. A stream that ends in an error has none; its error is the answer.
func counts(rows *sql.Rows) (lines, stamped int, err error) {
	if !rows.Next() {
		if err := toTheEnd(rows); err != nil {
			return 0, 0, err
		}
		return 0, 0, fault.New(fault.Internal, opApply, "no_answer", "the request ended without an answer")
	}
	if err := rows.Scan(&lines, &stamped); err != nil {
		return 0, 0, fmt.Errorf("scan: %w", err)
	}
	return lines, stamped, nil
}

// next goes to the next result set, which must be there.
func next(rows *sql.Rows) error {
	for rows.Next() { //nolint:revive // the rest of the set before
	}
	if err := rows.Err(); err != nil {
		return err
	}
	if !rows.NextResultSet() {
		if err := rows.Err(); err != nil {
			return err
		}
		return fault.New(fault.Internal, opApply, "no_answer", "the answer ended early")
	}
	return nil
}

// allApplied gives the verdict of a request that stamped every one of its lines.
func (a *answer) allApplied() {
	for doc, it := range a.items {
		rows := make([]writer.RowOutcome, it.Rows())
		for position := range rows {
			line := lineAt(it, position)
			rows[position] = writer.RowOutcome{DetailID: line, Verdict: writer.Applied}
			a.wins[line] = doc
		}
		a.outcomes[doc].Rows = rows
	}
}

// eachLine reads the verdict on every line.
func (a *answer) eachLine(rows *sql.Rows) error {
	if err := next(rows); err != nil {
		return err
	}
	for rows.Next() {
		if err := a.line(rows); err != nil {
			return err
		}
	}
	return rows.Err()
}

func (a *answer) line(rows *sql.Rows) error {
	var (
		doc, position int
		verdict       string
		winner        bool
		by, key       sql.NullString
		us            sql.NullInt64
	)
	if err := rows.Scan(&doc, &position, &verdict, &winner, &by, &us, &key); err != nil {
		return fmt.Errorf("scan: %w", err)
	}
	it, o := a.items[doc], &a.outcomes[doc]
	line := lineAt(it, position)
	if winner && verdict == string(writer.Applied) {
		a.wins[line] = doc
	}
	if o.Rows == nil {
		o.Rows = make([]writer.RowOutcome, 0, it.Rows())
	}
	o.Rows = append(o.Rows, writer.RowOutcome{DetailID: line, Verdict: writer.Verdict(verdict), By: by.String})
	if holder := (invoice.Version{US: us.Int64, Key: key.String}); by.Valid && (o.SupersededBy == "" || a.newest[doc].Compare(holder) < 0) {
		o.SupersededBy, a.newest[doc] = by.String, holder
	}
	return nil
}

// draw is the verdict on a document from those on its lines, as writer.Outcome says. A mark whose lines are all missing
// is missing: nothing else is true of it.
func draw(it writer.Item, rows []writer.RowOutcome) writer.Verdict {
	n := map[writer.Verdict]int{}
	for _, r := range rows {
		n[r.Verdict]++
	}
	switch {
	case n[writer.Missing] > 0 && (!it.FailureMark || n[writer.Missing] == len(rows)):
		return writer.Missing
	case n[writer.Applied] > 0:
		return writer.Applied
	case n[writer.Unchanged] > 0:
		return writer.Unchanged
	default:
		return writer.Superseded
	}
}
