package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"time"

	"sqlwriter/internal/breaker"
	"sqlwriter/internal/commit"
	"sqlwriter/internal/invoice"
	"sqlwriter/internal/ops"
)

type documentShowCommand struct {
	ID  string `arg:"" help:"The document's id."`
	Raw bool   `help:"Print the document as it is stored, without SQL: to correct it in a file and submit it with --replace."`
}

// shown is the result for programs.
type shown struct {
	ID      string `json:"id"`
	SysName string `json:"sys_name"`
	// Version is the time of the request, in UTC. The greatest version of a line is its newest result.
	Version time.Time `json:"version"`
	// VersionFrom is the source of Version: the id, sql_writer.version, or _ts.
	VersionFrom string        `json:"version_from"`
	Writer      invoice.State `json:"sql_writer"`
	// Problem is the reason why the document cannot be written; empty if it can.
	Problem string      `json:"problem,omitempty"`
	Lines   []shownLine `json:"lines"`
	// LinesUnknown says why the rows could not be read; empty if they were.
	LinesUnknown string `json:"lines_unknown,omitempty"`
}

// shownLine is one line of the document.
type shownLine struct {
	Line      int64 `json:"line"`
	Duplicate bool  `json:"duplicate"`
	// HasRow tells whether the detail row exists.
	HasRow bool         `json:"has_row"`
	Ledger *shownLedger `json:"ledger"`
	// Meaning describes which document the row contains.
	Meaning string       `json:"meaning"`
	Values  []shownValue `json:"values"`
}

// shownLedger is the ledger row of a line.
type shownLedger struct {
	DocumentID string    `json:"document_id"`
	Version    time.Time `json:"version"`
	Outcome    string    `json:"outcome"`
	AppliedAt  string    `json:"applied_at"`
}

// shownValue is one column: the value of the document and that of the row. null means NULL.
type shownValue struct {
	Table    invoice.Table `json:"table"`
	Column   string        `json:"column"`
	Document *string       `json:"document"`
	Row      *string       `json:"row"`
	Differs  bool          `json:"differs"`
}

// exactTime is shownTime with the microseconds of a version.
const exactTime = "2006-01-02 15:04:05.000000Z07:00"

// Run reads the document and the rows of its lines. What the document says is printed without SQL, too.
func (c *documentShowCommand) Run(ctx context.Context, a *app) (err error) {
	documents, from, err := a.openDocuments(ctx)
	if err != nil {
		return err
	}
	defer documents.Close()
	raw, err := documents.Read(ctx, c.ID)
	if isGone(err) {
		return &ops.RequestError{Refusal: ops.NotFound, Message: fmt.Sprintf("no document has the id %q", c.ID)}
	}
	if err != nil {
		return err
	}
	if c.Raw {
		var text bytes.Buffer
		if err := json.Indent(&text, raw, "", "  "); err != nil {
			return err
		}
		a.printf("%s", text.String())
		return nil
	}
	doc, err := invoice.Read(raw, a.clock())
	if err != nil {
		return err
	}
	s := shownOf(doc)
	if doc.Main != 0 {
		if s.Lines, err = readLines(ctx, doc, from); err != nil {
			s.Lines = []shownLine{}
			s.LinesUnknown, _ = a.describe(err)
		}
	}
	return errors.Join(a.emit(s, []string{s.ID}, func() error { return s.print(a) }), err)
}

// shownOf describes a document without its rows.
func shownOf(doc invoice.Document) shown {
	s := shown{
		ID: doc.ID, SysName: doc.SysName, Version: time.UnixMicro(doc.Version.US).UTC(), Writer: doc.State,
		VersionFrom: "the id", Lines: []shownLine{},
	}
	switch {
	case doc.NeedsVersion:
		s.VersionFrom = "_ts (the id has no time)"
	case !doc.HasTime:
		s.VersionFrom = "sql_writer.version (the id has no time)"
	}
	var invalid *invoice.Invalid
	if errors.As(doc.Problem, &invalid) {
		s.Problem = invalid.Error()
	}
	return s
}

// readLines compares a document with its rows.
func readLines(ctx context.Context, doc invoice.Document, from source) (lines []shownLine, err error) {
	db, err := connectSQL(ctx, from)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	// A preview writes nothing. Its "before" values are the rows' current values.
	outcomes, err := db.Apply(ctx, []commit.Item{commit.ItemOf(doc)}, commit.Preview, breaker.Heartbeat{})
	if err != nil {
		return nil, err
	}
	for _, row := range outcomes[0].Rows {
		l := shownLine{Line: row.DetailID, Duplicate: row.DetailID != doc.Main, HasRow: row.Before != nil, Values: []shownValue{}}
		if l.Ledger, err = readLedger(ctx, db, row.DetailID); err != nil {
			return nil, err
		}
		l.Values = values(row, db.Layout)
		l.Meaning = l.meaning(doc)
		lines = append(lines, l)
	}
	return lines, nil
}

// values lists each column with the value of the document and that of the row.
func values(row commit.RowOutcome, layout invoice.Layout) []shownValue {
	if row.Before == nil {
		return []shownValue{}
	}
	out := make([]shownValue, 0, len(row.Want))
	for i, col := range layout.Columns {
		out = append(out, shownValue{
			Table: col.Table, Column: col.Name, Document: pointer(row.Want[i]), Row: pointer(row.Before[i]), Differs: row.Want[i] != row.Before[i],
		})
	}
	return out
}

func pointer(v invoice.Value) *string {
	if v.Null {
		return nil
	}
	return &v.Text
}

// meaning describes which document the row contains.
func (l shownLine) meaning(doc invoice.Document) string {
	differ := 0
	for _, v := range l.Values {
		if v.Differs {
			differ++
		}
	}
	switch {
	case !l.HasRow:
		return "the line has no row in IVCE_DTL: nothing of the document is written"
	case l.Ledger == nil:
		return "no result was written to this line yet: the row is unchanged"
	case l.Ledger.DocumentID != doc.ID:
		return fmt.Sprintf("the row contains another document: %s", l.Ledger.DocumentID)
	case l.Ledger.Outcome == "failed":
		return "the row is marked as failed for this document"
	case differ > 0:
		return fmt.Sprintf("this document was written; %d %s changed since, in the row or in the document", differ, ops.Plural(differ, "value has", "values have"))
	}
	return "the row equals the document"
}

func (s shown) print(a *app) error {
	a.printf("document  %s", s.ID)
	a.printf("sys_name  %s", s.SysName)
	a.printf("version   %s, from %s", s.Version.In(a.location()).Format(exactTime), s.VersionFrom)
	if s.Writer.Status == "" {
		a.printf("status    never offered (it has no sql_writer.status)")
	} else {
		status, err := json.MarshalIndent(s.Writer, "", "  ")
		if err != nil {
			return err
		}
		a.printf("status    %s\noutcome   %s\nsql_writer %s", s.Writer.Status, orDash(s.Writer.Outcome), status)
	}
	if s.Problem != "" {
		a.printf("problem   %s", s.Problem)
	}
	switch {
	case s.LinesUnknown != "":
		a.printf("rows      unknown, SQL does not answer: %s", a.says(s.LinesUnknown))
	case len(s.Lines) == 0:
		a.printf("lines     none can be read")
	}
	for _, l := range s.Lines {
		if err := l.print(a); err != nil {
			return err
		}
	}
	return nil
}

func (l shownLine) print(a *app) error {
	what := "main"
	if l.Duplicate {
		what = "duplicate"
	}
	a.printf("\nline %d (%s): %s", l.Line, what, l.Meaning)
	if l.Ledger != nil {
		a.printf("  ledger: %s by %s, version %s, at %s", l.Ledger.Outcome, l.Ledger.DocumentID,
			l.Ledger.Version.In(a.location()).Format(exactTime), a.says(l.Ledger.AppliedAt))
	}
	if len(l.Values) == 0 {
		return nil
	}
	rows := [][]string{{"  ", "column", "document", "row"}}
	for _, v := range l.Values {
		mark := ""
		if v.Differs {
			mark = "≠"
		}
		rows = append(rows, []string{"  " + mark, string(v.Table) + "." + v.Column, text(v.Document), text(v.Row)})
	}
	return a.table(rows)
}

func text(s *string) string {
	if s == nil {
		return "NULL"
	}
	return strconv.Quote(*s)
}
