package invoice

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Table names one of the user's two tables.
type Table string

// The user's tables, whose schema is the user's. A row must exist in Detail; a missing row in Tracking is inserted.
const (
	Detail   Table = "IVCE_DTL"
	Tracking Table = "IVCE_TRKG_MSTR"
)

// Kind is the type of a column's values. Adapters map kinds to SQL types.
type Kind string

// The kinds. Every Value is canonical text in the form given here.
const (
	// Text: unchanged, at most Column.Max characters (UTF-16 units, as nvarchar counts them).
	Text Kind = "text"
	// Integer: decimal digits with an optional minus sign, within int64.
	Integer Kind = "integer"
	// Decimal: rounded half away from zero to exactly Column.Scale digits after the point: "0.9500".
	Decimal Kind = "decimal"
	// Flag: one of Column.Flags.
	Flag Kind = "flag"
	// Time: UTC with microseconds, "2025-12-17T16:30:15.123456Z"; of a Local column the same without the Z.
	Time Kind = "time"
)

// Source is the origin of a column's value.
type Source string

// The sources.
const (
	// FromDocument: the value at Column.Paths, the same for all lines of the document.
	FromDocument Source = "document"
	// FromMapping: Column.Constant, for all lines of all documents.
	FromMapping Source = "value"
	// FromParent: NULL for the main line, the main line's id for a duplicate.
	FromParent Source = "parent"
	// FromDuplicate: "no" for the main line, "yes" for a duplicate, in Column.Flags.
	FromDuplicate Source = "duplicate"
	// FromRequestTime: the time at the front of the document's id; NULL if the id has none.
	FromRequestTime Source = "request_time"
)

// Column is the mapping of a value to a column of one of the user's tables.
type Column struct {
	Table Table
	// Name is the column's name in the user's table.
	Name string
	// Source is the origin of the value. For FromDocument, Paths are members in dotted names
	// ("process_output.part_number"); the first that is neither absent nor null counts. For FromMapping, Constant is
	// the canonical text of the value.
	Source   Source
	Paths    []string
	Constant string
	Kind     Kind
	// Max is the most characters a Text may have (UTF-16 units). Cut: a longer one is cut there, not refused.
	Max int
	Cut bool
	// Precision and Scale are a Decimal's digits in all and after the point.
	Precision, Scale int
	// Min and Limit bound a number inclusively, as text ("0", "1"); empty means unbounded.
	Min, Limit string
	// Flags are what a Flag is written as: for yes and for no.
	Flags [2]string
	// Local: a Time is written as the deployment's clock shows it, and without an offset.
	Local bool
	// WithoutOffset says how a Time without an offset is read: not ("", it is refused), BareInUTC, BareInZone.
	WithoutOffset string
	// Required refuses a document without a value here (absent, null or ""), where NULL would erase the row's value.
	Required bool
	// Keep leaves what the row has where the document has no value. Nobody compares such a column.
	Keep bool
	// Words are texts that are written as others. Values, when not empty, are the only texts allowed after that.
	Words  map[string]string
	Values []string
	// Status marks the line status, which stewards change: a changed status is no edit. In IVCE_DTL it is the only
	// column that a failure mark writes.
	Status bool
	// Assumed says what we chose and why; empty if a document of the user names the column.
	Assumed string
	Meaning string

	zone *time.Location
}

// Values of Column.WithoutOffset.
const (
	BareInUTC  = "utc"
	BareInZone = "zone"
)

// PerLine reports whether the value differs between the main line and its duplicates.
func (c Column) PerLine() bool { return c.Source == FromParent || c.Source == FromDuplicate }

// From names the origin of the value, for people.
func (c Column) From() string {
	switch c.Source {
	case FromDocument:
		return strings.Join(c.Paths, ", ")
	case FromMapping:
		return "(value " + strconv.Quote(c.Constant) + ")"
	case FromParent, FromDuplicate, FromRequestTime:
	}
	return "(" + string(c.Source) + ")"
}

// Type is the column's type and limits in the words of a mapping.
func (c Column) Type() string {
	s := string(c.Kind)
	switch {
	case c.Kind == Decimal:
		s += fmt.Sprintf("(%d,%d)", c.Precision, c.Scale)
	case c.Kind == Flag:
		s += "(" + c.Flags[0] + "," + c.Flags[1] + ")"
	case c.Kind == Text:
		s += fmt.Sprintf("(%d)", c.Max)
	case c.Local:
		s += "(zone)"
	}
	if c.Min != "" || c.Limit != "" {
		s += fmt.Sprintf(" %s..%s", c.Min, c.Limit)
	}
	for _, word := range []struct {
		applies bool
		text    string
	}{
		{c.Required, "required"},
		{c.Keep, "kept if missing"},
		{c.Cut, "cut if longer"},
		{c.WithoutOffset != "", "without offset: " + c.WithoutOffset},
	} {
		if word.applies {
			s += " " + word.text
		}
	}
	return s
}

// Reads reports whether a member is one of the column's paths.
func (c Column) Reads(path string) bool { return slices.Contains(c.Paths, path) }

// Line statuses that the code compares.
const (
	// StatusAIError is the status of a failure mark.
	StatusAIError = "AI-ERROR"
)

// Value is one normalised value: NULL, or the canonical text of its column's kind. Values are equal exactly if their
// texts are.
type Value struct {
	Null bool
	Text string
}

// Null returns NULL.
func Null() Value { return Value{Null: true} }

// Of returns a value with a canonical text.
func Of(text string) Value { return Value{Text: text} }
