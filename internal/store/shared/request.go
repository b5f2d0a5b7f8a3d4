package shared

import (
	"encoding/json"
	"fmt"
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
	ItemHead = 8
	LineHead = 4
)

// Request encodes the one JSON parameter of a write:
//
//	{"items": [[number, id, key, version, source_ts, hash, hash version, mark, its values ...], ...],
//	 "lines": [[detail id, item's number, position, row hash, the values that differ from line to line ...], ...]}
//
// A value that several columns share is sent once (Slots). Values are texts or null. Times are in the form that
// timeText gives them; a nil timeText keeps their canonical text. The JSON is appended to one buffer, because a
// document may have thousands of lines.
//
// Errors by kind: document, code "value", for a value that is not of its column's kind; internal, code "values", for
// a slot whose columns have different values; internal, code "encode".
func Request(items []commit.Item, timeText func(canonical string) string) (string, error) {
	e := encoder{b: make([]byte, 0, 1024*len(items)), columns: invoice.Columns(), timeText: timeText}
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
	return string(e.b), e.err
}

// encoder appends JSON; err is the first failure.
type encoder struct {
	b        []byte
	columns  []invoice.Column
	timeText func(string) string
	err      error

	document, perLine []Slot
	// lineValues and rowHash belong to the previous line. An item's duplicates share them.
	lineValues []invoice.Value
	rowHash    string
}

func (e *encoder) raw(s string) { e.b = append(e.b, s...) }
func (e *encoder) int(n int64)  { e.b = strconv.AppendInt(e.b, n, 10) }
func (e *encoder) comma(n int) {
	if n > 0 {
		e.b = append(e.b, ',')
	}
}

// item appends number, id, key, version, source_ts, hash, hash version, mark, then the values that all lines share.
// All arrays have one length; a mark's values are NULL.
func (e *encoder) item(doc int, it commit.Item) {
	e.raw("[")
	e.int(int64(doc))
	e.raw(",")
	e.text(it.DocumentID)
	e.raw(",")
	e.text(it.Version.Key)
	e.raw(",")
	e.int(it.Version.US)
	e.raw(",")
	e.int(it.SourceTS)
	e.raw(",")
	e.text(it.Hash)
	e.raw(",")
	e.int(int64(it.HashVersion))
	if it.FailureMark {
		e.raw(",1")
	} else {
		e.raw(",0")
	}
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
				e.err = fault.New(fault.Internal, opEncode, "values", "document %s: expected one value in %s.%s and %s.%s, found two",
					it.DocumentID, s.Column.Table, s.Column.Name, e.columns[i].Table, e.columns[i].Name)
			}
		}
		e.raw(",")
		e.value(it, s.Column, values[s.columns[0]])
	}
}

// line appends detail id, item, position and row hash, then the values of this line.
func (e *encoder) line(it commit.Item, doc, position int) {
	line := it.Line(position)
	e.raw("[")
	e.int(line)
	e.raw(",")
	e.int(int64(doc))
	e.raw(",")
	e.int(int64(position))
	if it.FailureMark {
		e.raw(",null")
	} else {
		if position < 2 {
			e.lineValues, e.rowHash = invoice.RowValues(it.Values, it.Main, line), invoice.RowHash(it.Values, it.Main, line)
		}
		e.raw(`,"`)
		e.raw(e.rowHash) // hex
		e.raw(`"`)
	}
	e.values(it, e.perLine, e.lineValues)
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
		e.refuse(it, c, fmt.Sprintf("expected a number with %d digits before the point and %d after it", c.Precision-c.Scale, c.Scale))
	case c.Kind == invoice.Integer && !isInt64(v.Text):
		e.refuse(it, c, "expected a whole number of 64 bits")
	case c.Kind == invoice.Time:
		at, err := time.Parse(timeForm, v.Text)
		if err != nil || at.Format(timeForm) != v.Text {
			e.refuse(it, c, "expected a UTC time with six digits of a second")
		}
		if e.timeText != nil {
			e.text(e.timeText(v.Text))
			return
		}
	}
	e.text(v.Text)
}

// timeForm is the canonical text of a time (invoice.Time).
const timeForm = "2006-01-02T15:04:05.000000Z"

// refuse records a value that is not of its column's kind. Validation lets none pass; this check keeps a database
// from converting one silently.
func (e *encoder) refuse(it commit.Item, c invoice.Column, expected string) {
	if e.err == nil {
		e.err = fault.New(fault.Document, opEncode, "value", "document %s: %s.%s: %s, found something else", it.DocumentID, c.Table, c.Name, expected)
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
				e.err = fault.Wrap(fault.Internal, opEncode, "encode", "a value cannot be sent", err)
			}
			e.b = append(e.b, quoted...)
			return
		}
	}
	e.b = append(e.b, '"')
	e.b = append(e.b, s...)
	e.b = append(e.b, '"')
}
