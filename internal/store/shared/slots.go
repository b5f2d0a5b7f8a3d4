package shared

import (
	"slices"
	"strconv"

	"sqlwriter/internal/invoice"
)

// Slot is one value of a request. Columns with the same value share it.
type Slot struct {
	// Name is the slot's staged column: d0, d1, ... in a document, l0, l1, ... in a line. A path could clash with our
	// own columns there, or with another path in other case.
	Name string
	// Column is the first of the slot's columns. Max is the greatest length in characters that one of them takes.
	Column invoice.Column
	Max    int
	// Position is the value's place in the request's JSON array.
	Position int
	// columns are places in the column table.
	columns []int
}

// Slots returns the slots of a document, the slots of a line, and for each column the name of its slot.
func Slots(columns []invoice.Column) (document, line []Slot, of []string) {
	of = make([]string, len(columns))
	for i, c := range columns {
		list, letter, head := &document, "d", ItemHead
		if c.PerLine() {
			list, letter, head = &line, "l", LineHead
		}
		at := slices.IndexFunc(*list, func(s Slot) bool { return s.Column.SameValue(c) })
		if at < 0 {
			at = len(*list)
			*list = append(*list, Slot{Name: letter + strconv.Itoa(at), Column: c, Position: head + at})
		}
		s := &(*list)[at]
		s.Max, s.columns, of[i] = max(s.Max, c.Max), append(s.columns, i), s.Name
	}
	return document, line, of
}
