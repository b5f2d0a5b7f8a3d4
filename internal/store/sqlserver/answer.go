package sqlserver

import (
	"database/sql"

	"sqlwriter/internal/commit"
	"sqlwriter/internal/fault"
	"sqlwriter/internal/invoice"
)

// answer is what outcomes.sql says, by document.
type answer struct {
	items    []commit.Item
	mode     commit.Mode
	outcomes []commit.Outcome
}

// The first columns of the result sets, by which they are told from what a trigger of the user's may select.
const (
	setCounts  = "sqlwriter_lines"
	setLines   = "sqlwriter_doc"
	setCurrent = "sqlwriter_line"
)

// read takes in the result sets.
func (a *answer) read(rows *sql.Rows) error {
	lines, stamped, err := counts(rows)
	if err != nil {
		return err
	}
	t := commit.NewOutcomeBuilder(a.items)
	if stamped == lines {
		t.AllApplied()
	} else if err := eachLine(rows, t); err != nil {
		return err
	}
	if a.outcomes, err = t.Outcomes(); err != nil {
		return err
	}
	if a.mode != commit.Preview {
		return nil
	}
	before, err := currentValues(rows)
	if err != nil {
		return err
	}
	t.Present(before)
	return nil
}

// counts reads how many lines there are and how many were stamped.
func counts(rows *sql.Rows) (lines, stamped int, err error) {
	if err := skipToSet(rows, setCounts); err != nil {
		return 0, 0, err
	}
	if !rows.Next() {
		if err := rows.Err(); err != nil {
			return 0, 0, err
		}
		return 0, 0, badAnswer("expected one row of counts, found none")
	}
	if err := rows.Scan(&lines, &stamped); err != nil {
		return 0, 0, badAnswer("counts: %v", err)
	}
	return lines, stamped, nil
}

// find goes on to the result set that begins with a column. A stream that ends in an error has none; its error is the
// answer.
func skipToSet(rows *sql.Rows, first string) error {
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
			return badAnswer("the answer ended without %s", first)
		}
	}
}

// misread is an answer that is not what the request asks for: ours to mend, and nothing that a document did.
func badAnswer(format string, args ...any) error {
	return fault.New(fault.Internal, opApply, "answer", format, args...)
}

// eachLine reads the verdict on every line.
func eachLine(rows *sql.Rows, t *commit.OutcomeBuilder) error {
	if err := skipToSet(rows, setLines); err != nil {
		return err
	}
	for rows.Next() {
		v, err := scanVerdict(rows)
		if err != nil {
			return err
		}
		t.Add(v)
	}
	return rows.Err()
}

// scanVerdict reads one line's verdict.
func scanVerdict(rows *sql.Rows) (commit.LineVerdict, error) {
	var v commit.LineVerdict
	var by, key sql.NullString
	var us sql.NullInt64
	if err := rows.Scan(&v.Item, &v.Position, &v.Verdict, &v.Winner, &by, &us, &key); err != nil {
		return v, badAnswer("verdicts: %v", err)
	}
	v.By, v.Version = by.String, invoice.Version{US: us.Int64, Key: key.String}
	return v, nil
}
