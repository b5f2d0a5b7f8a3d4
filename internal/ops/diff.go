package ops

import (
	"context"
	"fmt"
	"slices"

	"sqlwriter/internal/commit"
	"sqlwriter/internal/fault"
	"sqlwriter/internal/invoice"
	"sqlwriter/internal/reconcile"
	"sqlwriter/internal/run"
)

// maxDiffRows bounds the lines of one preview, as those of one request. A document with more is previewed by itself.
const maxDiffRows = 1000

// DocumentDiff compares a document with its lines in SQL.
type DocumentDiff struct {
	ID string `json:"id"`
	// Status, Why and Next are those of an Explanation. Only document.diff gives them, as it does Taken, Outcome and
	// Warning. Status is "gone" without a document.
	Status string `json:"status,omitempty"`
	Why    string `json:"why,omitempty"`
	Next   string `json:"next,omitempty"`
	// Taken says that the app takes the document by itself now. The lines of another one show what a run that takes it
	// would do.
	Taken bool `json:"taken,omitempty"`
	// Outcome is what the document would get.
	Outcome invoice.Outcome `json:"outcome,omitempty"`
	// Problem says why the document would not be committed; empty otherwise.
	Problem string `json:"problem,omitempty"`
	// Warning names what a diff does not know of this document, and what in it stops the change feed.
	Warning string `json:"warning,omitempty"`
	// Lines are those that were asked for, the main line first.
	Lines []LineDiff `json:"lines"`
}

// LineDiff compares a line of a document with its rows.
type LineDiff struct {
	Line int64 `json:"line"`
	// Duplicate says that it is not the document's main line.
	Duplicate bool `json:"duplicate,omitempty"`
	// Outcome is what the request would come to on the line: applied, unchanged, superseded, missing, edited,
	// not_comparable; empty where another line's absence keeps the document back. By is the id of the document whose
	// newer content the line has or gets.
	Outcome invoice.Outcome `json:"outcome,omitempty"`
	By      string          `json:"by,omitempty"`
	// Writes says that the request would write Columns. Otherwise it leaves the line as it is. Says is this in words.
	Writes bool   `json:"writes"`
	Says   string `json:"says"`
	// Columns are those whose value in SQL is not the document's, in the order of the mapping. A status that a
	// rewrite keeps is not among them.
	Columns []ColumnDiff `json:"columns"`
}

// ColumnDiff is a column of a line. A nil value is NULL, which is not an empty text.
type ColumnDiff struct {
	Table  invoice.Table `json:"table"`
	Column string        `json:"column"`
	// Before is the value in SQL, After the document's.
	Before *string `json:"before"`
	After  *string `json:"after"`
}

// diff compares documents with their lines, by previews. The documents of a preview are one request: a line goes to the
// newest. lines selects the lines; nil means all. In mode rewrite the outcomes and values are those of a rewrite.
// Errors as commit.Sink.Apply.
func (s Stores) diff(
	ctx context.Context, mode commit.Mode, items []commit.Item, lines map[int64]bool,
) ([]DocumentDiff, error) {
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
		present, err := s.present(ctx, mode, outcomes)
		if err != nil {
			return nil, err
		}
		for i, o := range outcomes {
			diffs = append(diffs, s.documentDiff(mode, items[from+i], o, lines, present))
		}
		from = to
	}
	return diffs, nil
}

// present reads the lines that a rewrite compares. They are read after the preview, so they may be newer.
func (s Stores) present(
	ctx context.Context, mode commit.Mode, outcomes []commit.DocumentOutcome,
) (map[int64]reconcile.Line, error) {
	if mode != commit.Rewrite {
		return nil, nil
	}
	var ids []int64
	for _, o := range outcomes {
		for _, row := range o.Rows {
			ids = append(ids, row.DetailID)
		}
	}
	lines := map[int64]reconcile.Line{}
	for some := range slices.Chunk(ids, reconcile.MaxLines) {
		found, err := s.Rows.Lines(ctx, some)
		if err != nil {
			return nil, err
		}
		for _, line := range found {
			lines[line.ID] = line
		}
	}
	return lines, nil
}

func (s Stores) documentDiff(
	mode commit.Mode, it commit.Item, o commit.DocumentOutcome, lines map[int64]bool, present map[int64]reconcile.Line,
) DocumentDiff {
	d := DocumentDiff{ID: it.DocumentID, Lines: []LineDiff{}}
	if mode == commit.Write {
		d.Outcome = o.Verdict
	}
	switch missing := o.Missing(); {
	case o.Refused != nil:
		d.Problem = notWritten + reasonText(o.Refused)
	case len(missing) == 1:
		d.Problem = fmt.Sprintf(notWritten+"IVCE_DTL has no row for line %d", missing[0])
	case len(missing) > 1:
		d.Problem = fmt.Sprintf(notWritten+"IVCE_DTL has no row for line %d and %d more", missing[0], len(missing)-1)
	}
	for _, row := range o.Rows {
		if row.By == it.DocumentID && mode == commit.Write {
			d.Problem = "it is put off (clock_went_back): the ledger knows a later _ts of it, so the container's clock went back"
		}
		if lines != nil && !lines[row.DetailID] {
			continue
		}
		line := LineDiff{
			Line: row.DetailID, Duplicate: row.DetailID != it.Main, Outcome: row.Verdict, By: row.By,
			Columns: []ColumnDiff{},
		}
		if row.Before != nil {
			after := row.Want
			if mode == commit.Rewrite {
				after = s.rewritten(&line, it, row, present[row.DetailID])
			}
			line.Columns = columnDiffs(s.Mapping, row.Before, after)
		}
		if line.Writes = line.Outcome == invoice.OutcomeApplied; line.Says == "" {
			line.Says = line.says(mode)
		}
		d.Lines = append(d.Lines, line)
	}
	return d
}

// notWritten begins a Problem of a document that leaves all lines as they are.
const notWritten = "nothing of it is written: "

// says describes what a request of a mode does to the line.
func (l LineDiff) says(mode commit.Mode) string {
	n := len(l.Columns)
	columns := fmt.Sprintf("%d %s", n, Plural(n, "column", "columns"))
	switch l.Outcome { //nolint:exhaustive // no preview gives the others
	case invoice.OutcomeApplied:
		return fmt.Sprintf("a %s changes %s", mode, columns)
	case invoice.OutcomeUnchanged:
		if n == 0 {
			return "it has this content"
		}
		return fmt.Sprintf(
			"this content was written before, and %s changed since: a %s leaves the line alone", columns, mode)
	case invoice.OutcomeSuperseded:
		return fmt.Sprintf("it belongs to newer content, of %s: a %s leaves it alone", l.By, mode)
	case invoice.OutcomeMissing:
		return "IVCE_DTL has no row for it"
	case invoice.OutcomeNotComparable:
		return "another mapping wrote it, and somebody may have edited it" + onlyTold
	}
	return "another line of the document keeps it back: IVCE_DTL has no row for that one"
}

// onlyTold ends the reason why a line is not comparable.
const onlyTold = ": only `reindex --not-comparable` writes it"

// rewritten sets what a rewrite comes to on a line, and gives the line's values after it. now is the line.
func (s Stores) rewritten(l *LineDiff, it commit.Item, row commit.RowOutcome, now reconcile.Line) []invoice.Value {
	released := row.Verdict == invoice.OutcomeSuperseded && it.Released(row.DetailID)
	if !released && row.Verdict != invoice.OutcomeUnchanged && row.Verdict != invoice.OutcomeApplied {
		return row.Want
	}
	if l.Outcome = invoice.OutcomeApplied; now.Ledger.Outcome == "" || now.Values == nil {
		return row.Want
	}
	verdict, why := now.LeftAlone(it, s.Mapping.RowValues(it.Values, it.Main, row.DetailID))
	switch verdict { //nolint:exhaustive // it gives no others
	case invoice.OutcomeEdited:
		l.Outcome, l.Says = verdict, why+": a rewrite leaves it alone"
	case invoice.OutcomeNotComparable:
		l.Outcome, l.Says = verdict, why+onlyTold
	}
	after := slices.Clone(row.Want)
	if it.Overwrites(row.DetailID) || (row.Verdict != invoice.OutcomeUnchanged && !now.Ledger.Has(it)) {
		return after
	}
	tracked := false
	for i, c := range s.Mapping.Columns() {
		tracked = tracked || (c.Table == invoice.Tracking && !row.Before[i].Null)
	}
	for i, c := range s.Mapping.Columns() {
		if c.Status && (c.Table == invoice.Detail || tracked) {
			after[i] = row.Before[i] // a rewrite keeps the status of a line that has the content
		}
	}
	return after
}

func columnDiffs(m *invoice.Mapping, before, after []invoice.Value) []ColumnDiff {
	columns := []ColumnDiff{}
	for i, c := range m.Columns() {
		if before[i] != after[i] {
			columns = append(columns,
				ColumnDiff{Table: c.Table, Column: c.Name, Before: textOf(before[i]), After: textOf(after[i])})
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
func (o *Ops) rewriteDiff(
	ctx context.Context, docs []invoice.Document, f run.Filter, lines map[int64]bool,
) (diffs []DocumentDiff, err error) {
	var items []commit.Item
	var unreadable []DocumentDiff
	for _, doc := range docs[:min(len(docs), shown)] {
		if doc.Problem != nil {
			unreadable = append(unreadable,
				DocumentDiff{ID: doc.ID, Problem: notWritten + reasonText(doc.Problem), Lines: []LineDiff{}})
			continue
		}
		it := commit.ItemOf(doc)
		it.Overwrite, it.NotComparable, it.Releases = f.OverwriteEdits, f.NotComparable, f.Releases
		items = append(items, it)
	}
	err = o.stores(ctx, func(ctx context.Context, s Stores) error {
		diffs, err = s.diff(ctx, commit.Rewrite, items, lines)
		return err
	})
	return slices.Concat(diffs, unreadable), err
}
