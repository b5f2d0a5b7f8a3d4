package sqlserver

import (
	"database/sql"

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

// lines counts the lines of the request.
func (a *answer) lines() int {
	n := 0
	for _, it := range a.items {
		n += it.Rows()
	}
	return n
}

// The first columns of the result sets, by which they are told from what a trigger of the user's may select.
const (
	setCounts  = "sqlwriter_lines"
	setLines   = "sqlwriter_doc"
	setPresent = "sqlwriter_line"
)

// read takes in the result sets.
func (a *answer) read(rows *sql.Rows) error {
	a.outcomes, a.newest, a.wins = make([]writer.Outcome, len(a.items)), make([]invoice.Version, len(a.items)), map[int64]int{}
	lines, stamped, err := counts(rows)
	if err != nil {
		return err
	}
	if stamped == lines {
		a.allApplied()
	} else if err := a.eachLine(rows); err != nil {
		return err
	}
	for doc := range a.outcomes {
		it, o := a.items[doc], &a.outcomes[doc]
		if len(o.Rows) != it.Rows() {
			return misread("document %s: expected %d verdicts, found %d", it.DocumentID, it.Rows(), len(o.Rows))
		}
		o.DocumentID, o.Verdict = it.DocumentID, draw(it, o.Rows)
	}
	if a.mode == writer.Preview {
		return a.beforeAndAfter(rows)
	}
	return nil
}

// counts reads how many lines there are and how many were stamped.
func counts(rows *sql.Rows) (lines, stamped int, err error) {
	if err := find(rows, setCounts); err != nil {
		return 0, 0, err
	}
	if !rows.Next() {
		if err := rows.Err(); err != nil {
			return 0, 0, err
		}
		return 0, 0, misread("expected one row of counts, found none")
	}
	if err := rows.Scan(&lines, &stamped); err != nil {
		return 0, 0, misread("counts: %v", err)
	}
	return lines, stamped, nil
}

// find goes on to the result set that begins with a column. A stream that ends in an error has none; its error is the
// answer.
func find(rows *sql.Rows, first string) error {
	for {
		columns, err := rows.Columns()
		if err != nil {
			return err
		}
		if len(columns) > 0 && columns[0] == first {
			return nil
		}
		for rows.Next() { //nolint:revive // the driver goes on only from the end of a set
		}
		if err := rows.Err(); err != nil {
			return err
		}
		if !rows.NextResultSet() {
			if err := rows.Err(); err != nil {
				return err
			}
			return misread("the answer ended without %s", first)
		}
	}
}

// misread is an answer that is not what the request asks for: ours to mend, and nothing that a document did.
func misread(format string, args ...any) error {
	return fault.New(fault.Internal, opApply, "answer", format, args...)
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
	if err := find(rows, setLines); err != nil {
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
		return misread("verdicts: %v", err)
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
