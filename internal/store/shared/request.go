package shared

import (
	"cmp"
	"encoding/json"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"sqlwriter/internal/commit"
	"sqlwriter/internal/fault"
	"sqlwriter/internal/invoice"
)

const opEncode = "store: encode"

// ItemHead and LineHead are the numbers of members before the values in an item's and a line's array (Request).
const (
	ItemHead = 9
	LineHead = 5
)

// Payload has the parameters of a write: JSON, and the hashes that it names by their places (hashList).
type Payload struct {
	JSON string
	// Releases are those of the items, for a rewrite: [[detail id, item's number, key, write id, source_ts], ...]. The
	// key is a place in Hashes.
	Releases string
	Hashes   []byte
}

// Request encodes the parameters of a write:
//
//	{"items": [[number, id, key, version, source_ts, hash, hash version, mark, leave since, its values ...], ...],
//	 "lines": [[detail id, item's number, position, row hash of each table,
//	            the values that differ from line to line ...], ...]}
//
// Key and hashes are places in Hashes. A value that several columns share is sent once (Slots). Values are texts or
// null. The JSON is appended to one buffer, because a document may have thousands of lines.
//
// Errors by kind: document, code "value", for a value that is not of its column's kind; internal, code "bug", for
// a slot whose columns have different values.
func Request(items []commit.Item, form Form) (Payload, error) {
	e := encoder{Form: form, b: make([]byte, 0, 1024*len(items)), columns: form.Mapping.Columns()}
	e.document, e.perLine, _ = Slots(e.columns)
	e.raw(`{"items":[`)
	for i, it := range items {
		e.comma(i)
		e.item(i, it)
	}
	e.raw(`],"lines":[`)
	n := 0
	for doc, it := range items {
		for position := range it.Rows() {
			e.comma(n)
			e.line(it, doc, position)
			n++
		}
	}
	e.raw(`]}`)
	request := string(e.b)
	e.releases(items)
	return Payload{request, string(e.b), e.hashes}, e.err
}

// Form is what an engine needs of a request. Nil functions change and add nothing.
type Form struct {
	// Mapping is that of the statements.
	Mapping *invoice.Mapping
	// TimeText is the form of a time.
	TimeText func(canonical string) string
	// Stored is what the user's columns make of a row's values, which the row hashes are of.
	Stored func(row []invoice.Value) []invoice.Value
	// Line appends members to the array of a line.
	Line func(b []byte, doc, position int) []byte
}

// encoder appends JSON; err is the first failure.
type encoder struct {
	Form
	b       []byte
	hashes  hashList
	columns []invoice.Column
	err     error

	document, perLine []Slot
	// lineValues and the places of the row hashes belong to the previous line. An item's duplicates share them.
	lineValues       []invoice.Value
	detail, tracking int
}

func (e *encoder) raw(s string) { e.b = append(e.b, s...) }
func (e *encoder) int(n int64)  { e.b = strconv.AppendInt(e.b, n, 10) }
func (e *encoder) comma(n int) {
	if n > 0 {
		e.b = append(e.b, ',')
	}
}

// place adds a hash and returns its place.
func (e *encoder) place(hash string) int {
	place, err := e.hashes.add(Hash(hash))
	if err != nil && e.err == nil {
		e.err = err
	}
	return place
}

// item appends number, id, key, version, source_ts, hash, hash version, mark, commit.Item.LeaveSince (the largest
// number for none), then the values that all lines share. All arrays have one length; a mark's values are NULL.
func (e *encoder) item(doc int, it commit.Item) {
	e.raw("[")
	e.int(int64(doc))
	e.raw(",")
	e.text(it.DocumentID)
	e.raw(",")
	e.int(int64(e.place(it.Version.Key)))
	e.raw(",")
	e.int(it.Version.US)
	e.raw(",")
	e.int(it.SourceTS)
	e.raw(",")
	e.int(int64(e.place(it.Hash)))
	e.raw(",")
	e.int(int64(it.HashVersion))
	if it.FailureMark {
		e.raw(",1,")
	} else {
		e.raw(",0,")
	}
	e.int(cmp.Or(it.LeaveSince, math.MaxInt64))
	e.values(it, e.document, it.Values)
	e.raw("]")
}

// values appends the value of each slot; a mark's values are NULL.
func (e *encoder) values(it commit.Item, slots []Slot, values []invoice.Value) {
	for _, s := range slots {
		if it.FailureMark {
			e.raw(",null")
			continue
		}
		for _, i := range s.columns[1:] {
			if values[i] != values[s.columns[0]] && e.err == nil {
				e.err = fault.New(fault.Internal, opEncode, fault.CodeBug,
					"document %s: expected one value in %s.%s and %s.%s, found two",
					it.DocumentID, s.Column.Table, s.Column.Name, e.columns[i].Table, e.columns[i].Name)
			}
		}
		e.raw(",")
		e.value(it, s.Column, values[s.columns[0]])
	}
}

// line appends detail id, item, position and row hashes, then the values of this line.
func (e *encoder) line(it commit.Item, doc, position int) {
	line := it.Line(position)
	e.raw("[")
	e.int(line)
	e.raw(",")
	e.int(int64(doc))
	e.raw(",")
	e.int(int64(position))
	if it.FailureMark {
		e.raw(",null,null")
	} else {
		if position < 2 {
			e.lineValues = e.Mapping.RowValues(it.Values, it.Main, line)
			stored := e.lineValues
			if e.Stored != nil {
				stored = e.Stored(stored)
			}
			detail, tracking := e.Mapping.RowHashes(stored)
			e.detail, e.tracking = e.place(detail), e.place(tracking)
		}
		e.raw(",")
		e.int(int64(e.detail))
		e.raw(",")
		e.int(int64(e.tracking))
	}
	e.values(it, e.perLine, e.lineValues)
	if e.Line != nil {
		e.b = e.Line(e.b, doc, position)
	}
	e.raw("]")
}

// releases makes the list of the items' releases.
func (e *encoder) releases(items []commit.Item) {
	e.b = append(e.b[:0], '[')
	for doc, it := range items {
		for _, r := range it.Releases {
			e.comma(len(e.b) - 1)
			e.raw("[")
			e.int(r.Line)
			e.raw(",")
			e.int(int64(doc))
			e.raw(",")
			e.int(int64(e.place(r.Key)))
			e.raw(",")
			e.text(r.WriteID)
			e.raw(",")
			e.int(r.SourceTS)
			e.raw("]")
		}
	}
	e.raw("]")
}

// value appends a value as a JSON string, so that numbers keep their digits.
func (e *encoder) value(it commit.Item, c invoice.Column, v invoice.Value) {
	switch {
	case v.Null:
		e.raw("null")
		return
	case c.Kind == invoice.Decimal && !fits(c, v.Text):
		// A server would round it silently, and replace a text that is not a number by NULL.
		e.refuse(it, c,
			fmt.Sprintf("expected a number with %d digits before the point and %d after it",
				c.Precision-c.Scale, c.Scale))
	case c.Kind == invoice.Integer && !isInt64(v.Text):
		e.refuse(it, c, "expected a whole number of 64 bits")
	case c.Kind == invoice.Time:
		form := invoice.TimeLayout
		if c.Local {
			form = invoice.LocalLayout
		}
		at, err := time.Parse(form, v.Text)
		if err != nil || at.Format(form) != v.Text {
			e.refuse(it, c, "expected a time with six digits of a second, in UTC or as its column is local")
		}
		if e.TimeText != nil {
			e.text(e.TimeText(v.Text))
			return
		}
	}
	e.text(v.Text)
}

// refuse records a value that is not of its column's kind. Validation lets none pass; this check keeps a database
// from converting one silently.
func (e *encoder) refuse(it commit.Item, c invoice.Column, expected string) {
	if e.err == nil {
		e.err = fault.New(fault.Document, opEncode, "value", "document %s: %s.%s: %s, found something else",
			it.DocumentID, c.Table, c.Name, expected)
	}
}

// fits reports whether a text is a decimal of the column: an optional sign, digits, and exactly Scale digits after
// the point.
func fits(c invoice.Column, text string) bool {
	whole, fraction, point := strings.Cut(strings.TrimPrefix(text, "-"), ".")
	return digits(whole) && len(whole) <= max(1, c.Precision-c.Scale) && len(fraction) == c.Scale &&
		point == (c.Scale > 0) && (c.Scale == 0 || digits(fraction))
}

func digits(s string) bool {
	for i := range len(s) {
		if s[i] < '0' || s[i] > '9' {
			return false
		}
	}
	return s != ""
}

func isInt64(text string) bool {
	_, err := strconv.ParseInt(text, 10, 64)
	return err == nil
}

// text appends a JSON string. Plain ASCII, nearly every text, is copied; the library encodes the others.
func (e *encoder) text(s string) {
	for i := range len(s) {
		if c := s[i]; c < ' ' || c > '~' || c == '"' || c == '\\' {
			quoted, err := json.Marshal(s)
			if err != nil && e.err == nil {
				e.err = fault.Wrap(fault.Internal, opEncode, fault.CodeBug, "a value cannot be sent", err)
			}
			e.b = append(e.b, quoted...)
			return
		}
	}
	e.b = append(e.b, '"')
	e.b = append(e.b, s...)
	e.b = append(e.b, '"')
}
