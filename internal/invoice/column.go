package invoice

// Table names one of the user's two tables.
type Table string

// The user's tables. Their schema is the user's; a row must exist in Detail, one in Tracking is made when absent.
const (
	Detail   Table = "IVCE_DTL"
	Tracking Table = "IVCE_TRKG_MSTR"
)

// Kind is what a column holds. The domain knows kinds, adapters know SQL types.
type Kind string

// The kinds of value. Every Value is kept as canonical text; the comments give its form.
const (
	// Text: as it came, at most Column.Max characters (UTF-16 units, as nvarchar counts them).
	Text Kind = "text"
	// Integer: decimal digits with an optional minus sign, within int64.
	Integer Kind = "integer"
	// Decimal: rounded half away from zero to Column.Scale digits behind the point, always that many: "0.9500".
	Decimal Kind = "decimal"
	// Flag: "Y" or "N", as indicator columns of one character keep it.
	Flag Kind = "flag"
	// Time: UTC with microseconds: "2025-12-17T16:30:15.123456Z".
	Time Kind = "time"
)

// Source is where a column's value comes from.
type Source string

// The sources.
const (
	// FromDocument: the value at Column.Path, the same for the main line and its duplicates.
	FromDocument Source = "document"
	// FromParent: NULL for the main line, the main line's id for a duplicate.
	FromParent Source = "parent"
	// FromDuplicate: "N" for the main line, "Y" for a duplicate.
	FromDuplicate Source = "duplicate"
	// FromRequestTime: the time at the front of the document's id; NULL when the id has none.
	FromRequestTime Source = "request_time"
)

// Column is one row of the column table: a value that goes to one column of one of the user's tables. A new column is
// one more row and nothing else.
type Column struct {
	Table Table
	// Name is the column's name in the user's table.
	Name string
	// Source says where the value comes from; Path is its place in the document when the source is FromDocument,
	// as dotted member names ("process_output.part_number").
	Source Source
	Path   string
	Kind   Kind
	// Max is the most characters a Text may have (UTF-16 units).
	Max int
	// Precision and Scale are those of a Decimal: digits in all, and behind the point.
	Precision, Scale int
	// Min and Limit bound a number inclusively, as text ("0", "1"); empty means unbounded.
	Min, Limit string
	// Required refuses a document that has no value here (absent, null or ""), where NULL would destroy what the row says.
	Required bool
	// Values, when not empty, are the only texts allowed.
	Values []string
	// Assumed is empty when a document of the user names the column; otherwise it says what we chose and why.
	Assumed string
	// Meaning is one line for people.
	Meaning string
}

// PerLine reports whether the value differs between the main line and its duplicates. Every other value is the same for
// all lines of a document.
func (c Column) PerLine() bool { return c.Source == FromParent || c.Source == FromDuplicate }

// KeyColumn is the key of both user tables, unless a Layout calls it otherwise. KeyAssumed says what of it is assumed.
const (
	KeyColumn  = "IVCE_DTL_UID"
	KeyAssumed = "no document names the tables' keys; IVCE_DTL_UID is the member's name in a document"
)

// StatusColumn is the only column that a failure mark writes.
const StatusColumn = "IVCE_LNE_STAT"

// Line statuses with a meaning for us.
const (
	// StatusAIError is what a failure mark writes, and what AI_ERROR in a document becomes.
	StatusAIError = "AI-ERROR"
)

// Value is one normalised value: NULL, or the canonical text of its column's kind. Equal values are equal texts.
type Value struct {
	Null bool
	Text string
}

// Null is the absent value.
func Null() Value { return Value{Null: true} }

// Of is a value with a canonical text.
func Of(text string) Value { return Value{Text: text} }
