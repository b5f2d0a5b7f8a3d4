package commit

import (
	"encoding/json"
	"slices"
	"time"

	"sqlwriter/internal/fault"
	"sqlwriter/internal/invoice"
)

// Batch is what one invocation of a trigger brought.
type Batch struct {
	// Documents are the snapshots as they came, one JSON object each.
	Documents []json.RawMessage
	// Received is when the invocation began.
	Received time.Time
	// RetryCount is how often the host has offered this very batch before; its snapshots are then old.
	RetryCount int
	// Purpose says who brings the documents; FromFeed by default.
	Purpose Purpose
	// BatchID is the run or invocation that is named in a poison pill's evidence; it may be empty.
	BatchID string
	// TakeOver are the states from which a run takes documents although it is not their turn: failed, committed,
	// retry_scheduled before it is due. Of use with ForRun only.
	TakeOver []invoice.Status
	// Rewrite writes lines again that hold their document's content already (ForRun only). It changes no committed document's state.
	Rewrite bool
	// OneByOne sends each document by itself: those that shared a request with bad ones before.
	OneByOne bool
	// DivideUntil, if given, ends the search for bad documents sooner than usual.
	DivideUntil time.Time
	// Told, if given, is told once of every document that has an id and is finished with, also by several goroutines at once. Those
	// that wait for a dependency are not told.
	OnResult func(DocumentResult)
}

// DocumentResult is what became of one document.
type DocumentResult struct {
	ID string
	// Outcome is one of Report.Outcomes.
	Outcome string
	// Kind, Code and Reason are of the failure, if it is one; Reason is in our own words.
	Kind   fault.Kind
	Code   string
	Reason string
	// RetryCount is how many retries the document has spent; Again says that another one is scheduled.
	RetryCount int
	Again      bool
}

// Purpose is who brings documents, and so which of them are taken.
type Purpose string

// The purposes.
const (
	// FromFeed: the change feed. Only its batches tell how far the feed is behind.
	FromFeed Purpose = ""
	// FromTimer: the recovery timer, which read the documents a moment ago.
	FromTimer Purpose = "timer"
	// Reprocess: a person wants them tried again now: failed ones too, and retries that are not due. A failed document
	// starts its budget anew in the same patch that says how it ended; it is never pending in between.
	Reprocess Purpose = "reprocess"
	// ForRun: a batch of a run. Besides what is due it takes what Batch.TakeOver says, as Reprocess does: a document is never
	// pending in between.
	ForRun Purpose = "run"
)

// Report counts what became of a batch's documents; every document is counted once in Outcomes.
type Report struct {
	// Documents is how many came.
	Documents int
	// Outcomes counts documents by how they ended: applied, unchanged, superseded, retry_scheduled, failed,
	// skipped (not ours, not due, done before), not_offered (no status), gone, left (to the recovery timer), unreadable (no id to record by),
	// waiting (a dependency was unwell or the breaker is open; nothing was changed). In shadow: see Shadow.
	Outcomes map[string]int
	// Kinds counts the failures of documents by kind.
	Kinds map[string]int
	// SQLRequests and SQL are the requests made and the time spent in them; Reads and Writes count Cosmos operations
	// and Cosmos the time spent in them.
	SQLRequests, Reads, Writes int
	SQL, Cosmos                time.Duration
	// Shadow says that nothing was written or recorded. Columns then counts the documents whose lines hold something else
	// than they say, by column ("IVCE_DTL.UNSPSC_CD").
	Shadow  bool
	Columns map[string]int
	// Lag is the time from the oldest document's _ts to the end of this batch.
	Lag time.Duration
}

// takesOver reports whether a document in this state is taken although it is not its turn.
func (b Batch) takesOver(status invoice.Status) bool {
	switch b.Purpose {
	case Reprocess:
		return status == invoice.Failed || status == invoice.RetryScheduled
	case ForRun:
		return slices.Contains(b.TakeOver, status)
	case FromFeed, FromTimer:
	}
	return false
}
