package invoice

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
	// Flag: "Y" or "N", for indicator columns of one character.
	Flag Kind = "flag"
	// Time: UTC with microseconds: "2025-12-17T16:30:15.123456Z".
	Time Kind = "time"
)

// Source is the origin of a column's value.
type Source string

// The sources.
const (
	// FromDocument: the value at Column.Path, the same for all lines of the document.
	FromDocument Source = "document"
	// FromParent: NULL for the main line, the main line's id for a duplicate.
	FromParent Source = "parent"
	// FromDuplicate: "N" for the main line, "Y" for a duplicate.
	FromDuplicate Source = "duplicate"
	// FromRequestTime: the time at the front of the document's id; NULL if the id has none.
	FromRequestTime Source = "request_time"
)

// Column is one row of the column table: the mapping of a value to a column of one of the user's tables. Validation,
// statements, docs/rules.md and the check at the start follow from the table.
//
// A new column needs three edits by hand and two commands:
//   - its row in columns.go;
//   - a larger HashVersion, because every hash changes;
//   - its line in test/expect/mapping.go, which is independent of this table on purpose;
//   - `make update`, which rewrites the goldens and docs/rules.md;
//   - in each deployment the column in the user's table, and `sqlwriterctl migrate` for the procedures.
type Column struct {
	Table Table
	// Name is the column's name in the user's table.
	Name string
	// Source is the origin of the value. For FromDocument, Path is the member in dotted names
	// ("process_output.part_number").
	Source Source
	Path   string
	Kind   Kind
	// Max is the most characters a Text may have (UTF-16 units).
	Max int
	// Precision and Scale are a Decimal's digits in all and after the point.
	Precision, Scale int
	// Min and Limit bound a number inclusively, as text ("0", "1"); empty means unbounded.
	Min, Limit string
	// Required refuses a document without a value here (absent, null or ""), where NULL would erase the row's value.
	Required bool
	// Values, when not empty, are the only texts allowed.
	Values []string
	// Assumed says what we chose and why; empty if a document of the user names the column.
	Assumed string
	Meaning string
}

// PerLine reports whether the value differs between the main line and its duplicates.
func (c Column) PerLine() bool { return c.Source == FromParent || c.Source == FromDuplicate }

// KeyColumn is the key of both tables unless a Layout renames it. KeyAssumed says why it is assumed.
const (
	KeyColumn  = "IVCE_DTL_UID"
	KeyAssumed = "no document names the tables' keys; IVCE_DTL_UID is the member's name in a document"
)

// StatusColumn is the only column that a failure mark writes.
const StatusColumn = "IVCE_LNE_STAT"

const statusPath = "process_output.invoice_line_status"

// IsStatus reports the line status, whatever name the column has in a layout. Stewards change it, so that a changed
// status is no edit.
func (c Column) IsStatus() bool { return c.Path == statusPath }

// Line statuses that the code compares.
const (
	// StatusAIError is the status of a failure mark; AI_ERROR in a document becomes it.
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
