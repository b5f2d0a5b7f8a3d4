package reconcile

import (
	"slices"
	"time"
)

// Key identifies a finding in its environment.
type Key struct {
	Class Class `json:"class"`
	// Line is the id of the detail row.
	Line int64 `json:"line"`
	// Document is the id of the document.
	Document string `json:"document"`
}

// Seen is a finding as a look saw it.
type Seen struct {
	Key

	// Mark identifies what was compared: the document's _etag, the ledger's row, and the line's rows with their status.
	// At most MaxMark ASCII characters.
	Mark string `json:"-"`
	// Sure: a second look, a quarter of an hour after the first, saw it with the same Mark. Else it is a suspect.
	Sure bool `json:"-"`
	// Detail says what was found, in words: columns that differ, other lines, times. It has no values of columns. At
	// most MaxDetail UTF-16 units.
	Detail string `json:"detail,omitempty"`
	// Mends: the night writes it again.
	Mends bool `json:"mends,omitempty"`
}

// MaxDetail is the longest Seen.Detail, and MaxMark the longest Seen.Mark.
const (
	MaxDetail = 1000
	MaxMark   = 64
)

// Finding is a row of the table finding.
type Finding struct {
	Seen

	// FirstSeen and LastSeen are by the database's clock.
	FirstSeen time.Time `json:"first_seen"`
	LastSeen  time.Time `json:"last_seen"`
}

// Query selects findings. Zero fields mean any.
type Query struct {
	Classes []Class
	Line    int64
	// Mends bounds them to those that the night writes again.
	Mends bool
	// Suspects adds those that are not Sure.
	Suspects bool
}

// Count counts the findings of a class that are Sure.
type Count struct {
	Class    Class `json:"class"`
	Findings int   `json:"findings"`
	// First is the FirstSeen of the oldest one.
	First time.Time `json:"first,omitzero"`
}

// MaxFindings bounds the findings of a class that have rows, suspects included. The comparison's counts have the rest
// (Comparison.Unkept).
const MaxFindings = 10_000

// Overwrites reports whether a rewrite writes the finding's line only when an operator names it, because its row is not
// what was written. Naming it gives it the document's status too. What the night mends has rows as they were written,
// so a rewrite of it leaves an edit alone that came after the comparison.
func (f Finding) Overwrites() bool {
	return !f.Mends && slices.Contains([]Class{RowMissing, Edited, Stale}, f.Class)
}
