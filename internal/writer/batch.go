package writer

import (
	"encoding/json"
	"time"
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
	// Job is the run or invocation that is named in a poison pill's evidence; it may be empty.
	Job string
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
)

// Report counts what became of a batch's documents; every document is counted once in Outcomes.
type Report struct {
	// Documents is how many came.
	Documents int
	// Outcomes counts documents by how they ended: applied, unchanged, superseded, retry_scheduled, failed,
	// skipped (not ours, not due, done before), gone, left (to the recovery timer), unreadable (no id to record by),
	// waiting (a dependency was unwell or the gate is open; nothing was changed). In shadow: see Shadow.
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
