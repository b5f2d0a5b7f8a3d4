package shared

import (
	"fmt"
	"slices"

	"sqlwriter/internal/invoice"
)

// Slot is one value of a request. Columns with the same value share it.
type Slot struct {
	// Name is the member's path, or the source of a value that does not come from the document.
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
		list, head := &document, ItemHead
		if c.PerLine() {
			list, head = &line, LineHead
		}
		at := slotOf(*list, c)
		if at < 0 {
			at = len(*list)
			*list = append(*list, Slot{Name: slotName(*list, c), Column: c, Position: head + at})
		}
		s := &(*list)[at]
		s.Max, s.columns, of[i] = max(s.Max, c.Max), append(s.columns, i), s.Name
	}
	return document, line, of
}

// slotOf finds the slot of a column's value; -1 if the value has no slot yet.
func slotOf(slots []Slot, c invoice.Column) int {
	return slices.IndexFunc(slots, func(s Slot) bool {
		o := s.Column
		return o.Source == c.Source && o.Path == c.Path && o.Kind == c.Kind && o.Scale == c.Scale
	})
}

// slotName is the source of a value. Kind and scale are appended if another slot has that name.
func slotName(slots []Slot, c invoice.Column) string {
	name := string(c.Source)
	if c.Source == invoice.FromDocument {
		name = c.Path
	}
	if slices.ContainsFunc(slots, func(s Slot) bool { return s.Name == name }) {
		return fmt.Sprintf("%s %s %d", name, c.Kind, c.Scale)
	}
	return name
}
