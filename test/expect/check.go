// Package expect checks everything that the SQL Writer wrote with an independent second implementation of the mapping.
//
// It maps a document to its rows from the document alone. It shares no code with internal/invoice, has no column table,
// parses the time in an id, and computes its own SHA-256. An architecture test checks that independence.
package expect

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"
)

// Document is one document to check.
type Document struct {
	// Name identifies the document in differences.
	Name string
	ID   string
	// Submitted is the document as it was submitted last; nil if that is unknown.
	Submitted json.RawMessage
	// Stored is the document in the container; nil if it is not there.
	Stored json.RawMessage
	// Want is the required final state; nil if that is unknown, and then only the rows are checked.
	Want *Want
}

// Want is the required final state of a document.
type Want struct {
	// Status is sql_writer.status; empty means that the document must not change.
	Status string
	// Outcomes are the allowed values of sql_writer.outcome. There are two if the order of arrival decides: an older
	// result may be written before the newer one, or be superseded by it.
	Outcomes []string
	// Kind is sql_writer.last_error_kind of a document that did not commit.
	Kind string
	// Why explains the state in one line.
	Why string
}

// LeftAlone reports whether the document must not change.
func (w Want) LeftAlone() bool { return w.Status == "" }

// Exception reports whether the document is offered to the SQL Writer but must not commit.
func (w Want) Exception() bool { return w.Status != "" && w.Status != "committed" }

// Input is the input of Compare.
type Input struct {
	// Documents are all documents of the container.
	Documents []Document
	// Before are the tables before the first document. Rows of lines without a document, and columns that no document
	// sets, must not have changed. Nil skips that check.
	Before Tables
	// Redelivered allows `unchanged` in place of `applied`, because after a crash a document may be delivered twice,
	// and `failed` in place of `retry_scheduled`, because an earlier run may have spent its retries.
	Redelivered bool
}

// Difference is one difference between the required and the actual state.
type Difference struct {
	// Document is the name of the document; empty if the difference concerns no document.
	Document string
	// Line, Table and Column are the place in SQL; zero for a difference in the document itself.
	Line   int64
	Table  string
	Column string
	// Want and Got are the two values as quoted text; NULL is the word NULL.
	Want, Got string
}

func (d Difference) String() string {
	where := d.Document
	if d.Line != 0 {
		where = fmt.Sprintf("line %d (%s)", d.Line, d.Document)
	}
	if d.Table != "" {
		where += " " + d.Table
	}
	if d.Column != "" {
		where += "." + d.Column
	}
	return fmt.Sprintf("%s: want %s, got %s", where, d.Want, d.Got)
}

// Result is the result of Compare.
type Result struct {
	// Documents, Rows and Values count the compared documents, rows (of IVCE_DTL, IVCE_TRKG_MSTR and the ledger) and
	// column values.
	Documents, Rows, Values int
	// Written is the number of lines that contain the result of a document.
	Written     int
	Differences []Difference
}

// Exact reports whether there is no difference.
func (r Result) Exact() bool { return len(r.Differences) == 0 }

// Compare compares every document with its required final state. Then it finds the newest document of every line, from
// the documents alone, and compares it with every row and column of the three tables.
func Compare(now Tables, in Input) Result {
	c := &checker{in: in, now: now, winners: map[int64]document{}}
	for _, d := range in.Documents {
		c.document(d)
	}
	c.documents()
	for _, line := range c.lines() {
		d, won := c.winners[line]
		switch failed, marked := c.marked(line); {
		case marked && (!won || failed.versions.newerThan(d.versions)):
			c.row(failed.name, Detail, line, Row{"IVCE_LNE_STAT": just("AI-ERROR")}, false)
		case won && d.writer["outcome"] == "manual": // a person wrote its rows
		case won:
			c.written(d, line)
		default:
			c.untouched(line)
		}
	}
	return c.result
}

type checker struct {
	in      Input
	now     Tables
	read    []document
	winners map[int64]document
	result  Result
}

func (c *checker) differ(d Difference) { c.result.Differences = append(c.result.Differences, d) }

// document checks one document by itself.
func (c *checker) document(d Document) {
	c.result.Documents++
	if d.Stored == nil {
		c.differ(Difference{Document: d.Name, Want: "the document", Got: "nothing: it is not in the container"})
		return
	}
	doc, err := read(d.Name, d.Stored)
	if err != nil {
		c.differ(Difference{Document: d.Name, Want: "a document", Got: err.Error()})
		return
	}
	if d.Submitted != nil {
		leftAlone := d.Want != nil && d.Want.LeftAlone()
		same, err := sameContent(d.Submitted, d.Stored, leftAlone)
		if err != nil || !same {
			c.differ(Difference{Document: d.Name, Want: "the content that was submitted", Got: "another"})
		}
	}
	if d.Want != nil {
		c.end(doc, *d.Want)
	}
	c.read = append(c.read, doc)
}

// end compares sql_writer with the required final state.
func (c *checker) end(d document, want Want) {
	if want.LeftAlone() {
		return // sameContent has compared sql_writer, too
	}
	member := func(name string) string {
		s, _ := d.writer[name].(string)
		return s
	}
	differ := func(name, wanted string) {
		c.differ(
			Difference{Document: d.name, Column: "sql_writer." + name, Want: wanted, Got: orNull(just(member(name)))})
	}
	later := c.in.Redelivered && want.Status == "retry_scheduled" && member("status") == "failed"
	if member("status") != want.Status && !later {
		differ("status", want.Status)
	}
	if want.Exception() {
		if want.Kind != "" && member("last_error_kind") != want.Kind {
			differ("last_error_kind", want.Kind)
		}
		if member("last_error") == "" {
			differ("last_error", "a reason")
		}
		return
	}
	again := c.in.Redelivered && member("outcome") == "unchanged" && slices.Contains(want.Outcomes, "applied")
	if !slices.Contains(want.Outcomes, member("outcome")) && !again {
		differ("outcome", fmt.Sprint(want.Outcomes))
	}
	if _, err := time.Parse("2006-01-02 15:04:05.000000-07:00", member("committed_at")); err != nil {
		differ("committed_at", "a time like 2025-12-17 10:30:15.123456-06:00")
	}
}

// documents finds the newest document of every line among the committed ones.
func (c *checker) documents() {
	for _, d := range c.read {
		if outcome, _ := d.writer["outcome"].(string); outcome == "" && !c.reindexed(d) {
			continue // not offered, or not committed
		}
		if !d.hasTime && d.versions.us == 0 {
			c.differ(
				Difference{
					Document: d.name, Column: "sql_writer.version", Want: "a version: the id has no time", Got: "none",
				})
		}
		for _, line := range d.lines {
			if first, taken := c.winners[line]; !taken || d.versions.newerThan(first.versions) {
				c.winners[line] = d
			}
		}
	}
	for _, d := range c.read {
		if outcome, _ := d.writer["outcome"].(string); outcome != "superseded" {
			continue
		}
		by, _ := d.writer["superseded_by"].(string)
		if !slices.ContainsFunc(d.lines, func(l int64) bool { return c.winners[l].id == by && by != d.id }) {
			c.differ(
				Difference{
					Document: d.name, Column: "sql_writer.superseded_by",
					Want: "the id of the newest document of one of its lines", Got: by,
				})
		}
	}
}

// reindexed reports whether a reindex wrote a document that the old writer had committed. It records no outcome in the
// document, so the ledger is asked.
func (c *checker) reindexed(d document) bool {
	status, _ := d.writer["status"].(string)
	return status == "committed" && slices.ContainsFunc(d.lines, func(line int64) bool {
		by := c.now[Ledger][line]["document_id"]
		return by != nil && *by == d.id
	})
}

// marked returns the poison message whose mark a line has, by the ledger.
func (c *checker) marked(line int64) (document, bool) {
	row := c.now[Ledger][line]
	if row == nil || orNull(row["outcome"]) != `"failed"` {
		return document{}, false
	}
	at := slices.IndexFunc(c.read, func(d document) bool {
		status, _ := d.writer["status"].(string)
		return orNull(row["document_id"]) == strconv.Quote(d.id) && status == "failed" && slices.Contains(d.lines, line)
	})
	if at < 0 {
		return document{}, false
	}
	return c.read[at], true
}

// lines returns the sorted ids of all lines in a table or in a committed document.
func (c *checker) lines() []int64 {
	all := map[int64]bool{}
	for _, tables := range []Tables{c.now, c.in.Before} {
		for _, rows := range tables {
			for line := range rows {
				all[line] = true
			}
		}
	}
	for line := range c.winners {
		all[line] = true
	}
	return slices.Sorted(maps.Keys(all))
}

// written compares the rows of a line with its newest document.
func (c *checker) written(d document, line int64) {
	c.result.Written++
	detail, err := detailRow(d, line)
	if err != nil {
		c.differ(
			Difference{Document: d.name, Line: line, Want: "a value that this check understands", Got: err.Error()})
		return
	}
	tracking, err := trackingRow(d, line)
	if err != nil {
		c.differ(
			Difference{Document: d.name, Line: line, Want: "a value that this check understands", Got: err.Error()})
		return
	}
	c.row(d.name, Detail, line, detail, true)
	c.row(d.name, Tracking, line, tracking, true)
	c.row(d.name, Ledger, line, Row{
		"document_id": just(d.id), "document_key": just(d.versions.key),
		"version_us": just(strconv.FormatInt(d.versions.us, 10)), "outcome": just("applied"),
	}, false)
}

// untouched checks that the rows of a line without a committed document have not changed.
func (c *checker) untouched(line int64) {
	if row := c.now[Ledger][line]; row != nil {
		c.differ(
			Difference{
				Line: line, Table: Ledger, Want: "no row: no committed document names the line",
				Got: orNull(row["document_id"]),
			})
	}
	if c.in.Before == nil {
		return
	}
	for _, table := range []string{Detail, Tracking} {
		before, now := c.in.Before[table][line], c.now[table][line]
		switch {
		case before == nil && now != nil:
			c.differ(Difference{Line: line, Table: table, Want: "no row", Got: "a row"})
		case before != nil:
			c.row("no document", table, line, before, false)
		}
	}
}

// row compares one row with its required values. With rest, columns that are not in want must not have changed.
func (c *checker) row(name, table string, line int64, want Row, rest bool) {
	got := c.now[table][line]
	if got == nil {
		c.differ(Difference{Document: name, Line: line, Table: table, Want: "a row", Got: "none"})
		return
	}
	c.result.Rows++
	for _, column := range slices.Sorted(maps.Keys(want)) {
		c.value(Difference{Document: name, Line: line, Table: table, Column: column}, want[column], got)
	}
	before := c.in.Before[table][line]
	if !rest || before == nil {
		return
	}
	for _, column := range slices.Sorted(maps.Keys(before)) {
		if _, ours := want[column]; !ours {
			c.value(Difference{Document: name, Line: line, Table: table, Column: column}, before[column], got)
		}
	}
}

func (c *checker) value(at Difference, want *string, row Row) {
	c.result.Values++
	got, there := row[at.Column]
	at.Want, at.Got = orNull(want), orNull(got)
	if !there {
		at.Got = "no such column"
	}
	if !there || (want == nil) != (got == nil) || (want != nil && *want != *got) {
		c.differ(at)
	}
}

func orNull(s *string) string {
	if s == nil {
		return "NULL"
	}
	return strconv.Quote(*s)
}
