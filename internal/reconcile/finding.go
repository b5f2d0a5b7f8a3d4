package reconcile

import (
	"time"

	"sqlwriter/internal/run"
)

// State is the state of a finding.
type State string

// The states of a finding.
const (
	// Open: it was true when it was looked at last.
	Open State = "open"
	// Gone: it is no longer true.
	Gone State = "gone"
	// Accepted: a person said why it may stay. It opens again when the line's rows change.
	Accepted State = "accepted"
)

// Key identifies a finding in its environment.
type Key struct {
	Class Class `json:"class"`
	// Line is the id of the detail row; for a finding about a whole document its main line; 0 without one.
	Line int64 `json:"line,omitempty"`
	// Document is the id of the document, or of the lease document of LeftBehind.
	Document string `json:"document,omitempty"`
}

// Mend is how the timer mends a finding by itself.
type Mend string

// The ways to mend.
const (
	// ByPeople: the timer leaves it alone.
	ByPeople Mend = ""
	// WithWrite: all documents of the line are written again in mode write.
	WithWrite Mend = "write"
	// WithRewrite: the document is written again in mode rewrite.
	WithRewrite Mend = "rewrite"
)

// Seen is a finding as a run saw it.
type Seen struct {
	Key

	// RowHash identifies the line's rows, status included; empty when both are missing or none is concerned. At most MaxRowHash ASCII
	// characters.
	RowHash string `json:"row_hash,omitempty"`
	// Detail says what was found, in words: columns that differ, other lines, times. It has no values of columns. At most MaxDetail
	// UTF-16 units.
	Detail string `json:"detail,omitempty"`
	Mend   Mend   `json:"mend,omitempty"`
}

// MaxDetail is the longest Seen.Detail, and MaxRowHash the longest Seen.RowHash.
const (
	MaxDetail  = 1000
	MaxRowHash = 128
)

// Finding is a row of the table finding.
type Finding struct {
	Seen

	State State `json:"state"`
	// FirstSeen and LastSeen are by the database's clock. A finding that is found again after it was gone begins anew.
	FirstSeen time.Time `json:"first_seen"`
	LastSeen  time.Time `json:"last_seen"`
	// Run is the run that saw it last, or found it gone. QueuedBy is the run that was started to mend it; empty when none was.
	Run      string `json:"run"`
	QueuedBy string `json:"queued_by,omitempty"`
	// AcceptedHash is the RowHash that By accepted, and Why the reason. An open one that has them was accepted before its
	// rows changed, or before it was gone.
	AcceptedHash string `json:"accepted_hash,omitempty"`
	By           string `json:"by,omitempty"`
	Why          string `json:"why,omitempty"`
}

// Query selects findings. Zero fields mean any.
type Query struct {
	Classes []Class
	State   State
	Line    int64
	// Unqueued leaves out those that a run was started for. Mend bounds them to one way, if not ByPeople.
	Unqueued bool
	Mend     Mend
}

// Count counts the findings of a class.
type Count struct {
	Class    Class `json:"class"`
	Open     int   `json:"open"`
	Accepted int   `json:"accepted"`
	// First is the FirstSeen of the oldest open one.
	First time.Time `json:"first,omitzero"`
}

// MaxOpen bounds the open findings of a class that have rows. The run's counts have the rest.
const MaxOpen = 10_000

// Outcome is the class as a column of the receipt.
func (c Class) Outcome() run.Outcome { return run.Outcome(c) }
