package invoice

import "encoding/json"

// Status is sql_writer.status. Readers outside count these four.
type Status string

// The statuses. Processing belongs to the old writer and is never written by us.
const (
	Pending        Status = "pending"
	RetryScheduled Status = "retry_scheduled"
	Committed      Status = "committed"
	Failed         Status = "failed"
	Processing     Status = "processing"
)

// State is the member sql_writer: everything we know and promise about a document. It is patched as one value, so
// members that we do not know are carried over in Extra.
type State struct {
	// Present is false when the document has no sql_writer yet; it is then pending.
	Present bool
	// Status is normalised to lower case; StatusFound is the text as it stood. An unknown text stays in both.
	Status      Status
	StatusFound string
	// Outcome says how a committed document ended: applied, unchanged or superseded; SupersededBy names the newer
	// document.
	Outcome      string
	SupersededBy string
	// RetryCount is how many retries the document's own errors have spent.
	RetryCount int
	// RetryAfter is when the next try is due, epoch seconds; 0 (missing, or not a number) means due.
	RetryAfter int64
	// LastError (at most 1 KB), LastErrorAt, LastErrorKind speak of the last failure.
	LastError     string
	LastErrorAt   string
	LastErrorKind string
	CommittedAt   string
	FailedAt      string
	// Error and FinalError are written with status failed: why, and what could not be marked in SQL.
	Error      string
	FinalError string
	// ReprocessCount is how often a person reset the document.
	ReprocessCount int
	// Version is the version's microseconds for an id without a time; 0 when there is none.
	Version int64
	// Attempts are the last ten failures, oldest first.
	Attempts []Attempt
	// Extra holds the members that we do not know, untouched.
	Extra map[string]json.RawMessage
}

// Attempt is one failure in a document's history. Times are stamps in the layout that readers know.
type Attempt struct {
	At      string `json:"at"`
	Kind    string `json:"kind"`
	Error   string `json:"error"`
	NextTry string `json:"next_try,omitempty"`
}

// MaxAttempts is how many attempts a document remembers; MaxErrorBytes bounds every error text in it.
const (
	MaxAttempts   = 10
	MaxErrorBytes = 1024
)
