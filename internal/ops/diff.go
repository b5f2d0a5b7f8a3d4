package ops

import (
	"context"
	"fmt"
	"slices"

	"sqlwriter/internal/commit"
	"sqlwriter/internal/fault"
	"sqlwriter/internal/invoice"
)

// maxDiffRows bounds the lines of one preview, as those of one request. A document with more is previewed by itself.
const maxDiffRows = 1000

// DocumentDiff compares a document with its lines in SQL.
type DocumentDiff struct {
	ID string `json:"id"`
	// Problem says why nothing of the document would be written; empty otherwise.
	Problem string `json:"problem,omitempty"`
	// Lines are those that were asked for, the main line first.
	Lines []LineDiff `json:"lines"`
}

// LineDiff compares a line of a document with its rows.
type LineDiff struct {
	Line int64 `json:"line"`
	// Verdict is what the request would come to on the line: applied, unchanged, superseded, missing, edited; empty where another line's
	// absence keeps the document back. By is the id of the document whose newer content the line has.
	Verdict commit.Verdict `json:"verdict,omitempty"`
	By      string         `json:"by,omitempty"`
	// Columns are those whose value in SQL is not the document's, in the order of the column table. A status that a rewrite keeps is not
	// among them.
	Columns []ColumnDiff `json:"columns"`
}

// ColumnDiff is a column of a line. A nil value is NULL.
type ColumnDiff struct {
	Table  invoice.Table `json:"table"`
	Column string        `json:"column"`
	Before *string       `json:"before"`
	After  *string       `json:"after"`
}

// diff compares documents with their lines, by previews. The documents of a preview are one request: a line goes to the newest. lines
// selects the lines; nil means all. In mode rewrite the verdicts and values are those of a rewrite, as far as a preview knows them: it does
// not compare a line that gets other content with the ledger. Errors as commit.Sink.Apply.
func (s Stores) diff(ctx context.Context, mode commit.Mode, items []commit.Item, lines map[int64]bool) ([]DocumentDiff, error) {
	diffs := make([]DocumentDiff, 0, len(items))
	for from := 0; from < len(items); {
		to, rows := from, 0
		for to < len(items) && (to == from || rows+items[to].Rows() <= maxDiffRows) {
			rows += items[to].Rows()
			to++
		}
		outcomes, err := s.Preview(ctx, items[from:to])
		if err != nil {
			return nil, err
		}
		for i, o := range outcomes {
			diffs = append(diffs, s.documentDiff(mode, items[from+i], o, lines))
		}
		from = to
	}
	return diffs, nil
}

func (s Stores) documentDiff(mode commit.Mode, it commit.Item, o commit.Outcome, lines map[int64]bool) DocumentDiff {
	d := DocumentDiff{ID: it.DocumentID, Lines: []LineDiff{}}
	switch {
	case o.Refused != nil:
		d.Problem = reasonText(o.Refused)
	case o.Verdict == commit.Missing:
		d.Problem = fmt.Sprintf("nothing of it is written: IVCE_DTL has no row for line %d", o.Missing()[0])
	}
	for _, row := range o.Rows {
		if lines != nil && !lines[row.DetailID] {
			continue
		}
		line := LineDiff{Line: row.DetailID, Verdict: row.Verdict, By: row.By, Columns: []ColumnDiff{}}
		if row.Before != nil {
			after := invoice.RowValues(it.Values, it.Main, row.DetailID)
			if mode == commit.Rewrite && row.Verdict == commit.Unchanged {
				line.Verdict, after = rewritten(it, row, after)
			}
			line.Columns = columnDiffs(s.Layout.OrDefault(), row.Before, after)
		}
		d.Lines = append(d.Lines, line)
	}
	return d
}

// rewritten is what a rewrite comes to on a line of which the ledger has the document's content, and the line's values after it.
func rewritten(it commit.Item, row commit.RowOutcome, values []invoice.Value) (commit.Verdict, []invoice.Value) {
	if it.Overwrites(row.DetailID) {
		return commit.Applied, values
	}
	tracked := false
	for i, c := range invoice.Columns() {
		tracked = tracked || (c.Table == invoice.Tracking && !row.Before[i].Null)
	}
	detail, tracking := invoice.RowHashes(row.Before)
	if wantDetail, wantTracking := invoice.RowHashes(values); detail != wantDetail || (tracked && tracking != wantTracking) {
		return commit.Edited, values
	}
	values = slices.Clone(values)
	for i, c := range invoice.Columns() {
		if c.Name == invoice.StatusColumn && (c.Table == invoice.Detail || tracked) {
			values[i] = row.Before[i] // a rewrite keeps the status
		}
	}
	return commit.Applied, values
}

func columnDiffs(layout invoice.Layout, before, after []invoice.Value) []ColumnDiff {
	columns := []ColumnDiff{}
	for i, c := range layout.Columns {
		if before[i] != after[i] {
			columns = append(columns, ColumnDiff{Table: c.Table, Column: c.Name, Before: textOf(before[i]), After: textOf(after[i])})
		}
	}
	return columns
}

func textOf(v invoice.Value) *string {
	if v.Null {
		return nil
	}
	return &v.Text
}

// reasonText is an error's reason in our own words.
func reasonText(err error) string {
	if e := fault.As(err); e != nil {
		return e.Reason
	}
	return fmt.Sprintf("%T", err)
}

// rewriteDiff says what a rewrite does to lines of documents, at most shown of them.
func (o *Ops) rewriteDiff(ctx context.Context, docs []invoice.Document, overwrite []int64, lines map[int64]bool) (diffs []DocumentDiff, err error) {
	var items []commit.Item
	var unreadable []DocumentDiff
	for _, doc := range docs[:min(len(docs), shown)] {
		if doc.Problem != nil {
			unreadable = append(unreadable, DocumentDiff{ID: doc.ID, Problem: reasonText(doc.Problem), Lines: []LineDiff{}})
			continue
		}
		it := commit.ItemOf(doc)
		it.Overwrite = overwrite
		items = append(items, it)
	}
	err = o.stores(ctx, func(ctx context.Context, s Stores) error {
		diffs, err = s.diff(ctx, commit.Rewrite, items, lines)
		return err
	})
	return slices.Concat(diffs, unreadable), err
}
