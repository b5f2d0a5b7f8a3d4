package sqlserver

import (
	"database/sql"

	"sqlwriter/internal/commit"
	"sqlwriter/internal/fault"
	"sqlwriter/internal/invoice"
	"sqlwriter/internal/store/shared"
)

// answer collects the outcomes of outcomes.sql by document.
type answer struct {
	items    []commit.Item
	mode     commit.Mode
	form     shared.Form
	recipes  shared.Recipes // of a rewrite
	outcomes []commit.DocumentOutcome
	// leavesAlone reports that a rewrite does not write every line.
	leavesAlone bool
}

// The first columns of our result sets. They tell them from result sets of a user's trigger.
const (
	setCounts  = "sqlwriter_lines"
	setLines   = "sqlwriter_doc"
	setCurrent = "sqlwriter_line"
	setPresent = "sqlwriter_present"
)

func (a *answer) read(rows *sql.Rows) error {
	lines, stamped, err := counts(rows)
	if err != nil {
		return err
	}
	t := commit.NewOutcomeBuilder(a.form.Mapping, a.items)
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
	before, err := currentValues(rows, a.form.Mapping.Columns())
	if err != nil {
		return err
	}
	t.Present(before, a.form.Stored)
	return nil
}

// counts reads the number of lines and the number of stamped lines.
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

// skipToSet moves to the result set that begins with a column. If the stream ends with an error first, it returns
// that error.
func skipToSet(rows *sql.Rows, first string) error {
	for {
		columns, err := rows.Columns()
		if err != nil {
			return err
		}
		if len(columns) > 0 && columns[0] == first {
			return nil
		}
		for rows.Next() { //nolint:revive // the driver moves on only from the end of a set
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

// badAnswer is an answer that does not fit the request. It is internal, because no document can cause it.
func badAnswer(format string, args ...any) error {
	return fault.New(fault.Internal, opApply, fault.CodeBug, format, args...)
}

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

func scanVerdict(rows *sql.Rows) (commit.LineVerdict, error) {
	var v commit.LineVerdict
	var by sql.NullString
	var key shared.Hash
	var us sql.NullInt64
	if err := rows.Scan(&v.Item, &v.Position, &v.Verdict, &v.Winner, &by, &us, &key); err != nil {
		return v, badAnswer("verdicts: %v", err)
	}
	v.By, v.Version = by.String, invoice.Version{US: us.Int64, Key: string(key)}
	return v, nil
}
