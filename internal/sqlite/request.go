package sqlite

import (
	"encoding/json"
	"strconv"

	"sqlwriter/internal/fault"
	"sqlwriter/internal/invoice"
	"sqlwriter/internal/writer"
)

// check refuses what the port's contract rules out before anything is sent: these are our own mistakes, not a
// document's.
func check(items []writer.Item, mode writer.Mode, columns int) error {
	switch mode {
	case writer.Write, writer.Rewrite, writer.Preview:
	default:
		return fault.New(fault.Internal, "sqlite: apply", "mode", "expected write, rewrite or preview, found %q", mode)
	}
	lines := map[int64]struct{}{}
	for _, it := range items {
		if !it.FailureMark && len(it.Values) != columns {
			return fault.New(fault.Internal, "sqlite: apply", "values",
				"document %s: expected %d values, one for each row of the column table, found %d", it.DocumentID, columns, len(it.Values))
		}
		clear(lines)
		lines[it.Main] = struct{}{}
		for _, d := range it.Duplicates {
			if _, ok := lines[d]; ok {
				return fault.New(fault.Internal, "sqlite: apply", "repeated_line",
					"document %s: expected every line once, found %d twice", it.DocumentID, d)
			}
			lines[d] = struct{}{}
		}
	}
	return nil
}

// encode writes the one JSON parameter of a request: {"items":[[...],...],"rows":[[...],...]} in the layout of
// load_items.sql and load_rows.sql. It is appended straight into one buffer: a document may have thousands of lines.
func encode(items []writer.Item, columns []invoice.Column) (string, error) {
	e := encoder{b: make([]byte, 0, 1024*len(items)), columns: columns}
	e.raw(`{"items":[`)
	for i, it := range items {
		e.comma(i)
		e.item(it)
	}
	e.raw(`],"rows":[`)
	n := 0
	for doc, it := range items {
		for position := range it.Rows() {
			e.comma(n)
			e.row(it, doc, position)
			n++
		}
	}
	e.raw(`]}`)
	return string(e.b), e.err
}

// encoder appends JSON; err is the first failure.
type encoder struct {
	b       []byte
	columns []invoice.Column
	err     error
}

func (e *encoder) raw(s string) { e.b = append(e.b, s...) }
func (e *encoder) int(n int64)  { e.b = strconv.AppendInt(e.b, n, 10) }
func (e *encoder) comma(n int) {
	if n > 0 {
		e.b = append(e.b, ',')
	}
}

// item appends id, key, version, source_ts, hash, hash version, mark, then the values that all lines share.
func (e *encoder) item(it writer.Item) {
	e.raw("[")
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
		e.raw(",1]")
		return
	}
	e.raw(",0")
	for i, c := range e.columns {
		if !perLine(c) {
			e.raw(",")
			e.value(it.Values[i])
		}
	}
	e.raw("]")
}

// row appends line, item, position and row hash, then the values that belong to this line alone.
func (e *encoder) row(it writer.Item, doc, position int) {
	line := lineAt(it, position)
	e.raw("[")
	e.int(line)
	e.raw(",")
	e.int(int64(doc))
	e.raw(",")
	e.int(int64(position))
	if it.FailureMark {
		e.raw(",null]")
		return
	}
	e.raw(",")
	e.text(invoice.RowHash(it.Values, it.Main, line))
	values := invoice.RowValues(it.Values, it.Main, line)
	for i, c := range e.columns {
		if perLine(c) {
			e.raw(",")
			e.value(values[i])
		}
	}
	e.raw("]")
}

func (e *encoder) value(v invoice.Value) {
	if v.Null {
		e.raw("null")
		return
	}
	e.text(v.Text)
}

// text appends a JSON string. Plain ASCII, which is nearly everything, is copied; the library does the rest.
func (e *encoder) text(s string) {
	for i := range len(s) {
		if c := s[i]; c < ' ' || c > '~' || c == '"' || c == '\\' {
			quoted, err := json.Marshal(s)
			if err != nil && e.err == nil {
				e.err = fault.Wrap(fault.Internal, "sqlite: apply", "encode", "a value cannot be sent", err)
			}
			e.b = append(e.b, quoted...)
			return
		}
	}
	e.b = append(e.b, '"')
	e.b = append(e.b, s...)
	e.b = append(e.b, '"')
}

// lineAt is the line at a position of an item: the main line first, then the duplicates in their order.
func lineAt(it writer.Item, position int) int64 {
	if position == 0 {
		return it.Main
	}
	return it.Duplicates[position-1]
}
