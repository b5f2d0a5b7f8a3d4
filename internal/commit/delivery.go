package commit

import (
	"encoding/json"
	"slices"
	"time"

	"sqlwriter/internal/fault"
	"sqlwriter/internal/invoice"
)

// Delivery is the documents that the feed, the timer or a run brings at once.
type Delivery struct {
	// Documents are the snapshots, one JSON object each.
	Documents []json.RawMessage
	// Received is when the invocation began.
	Received time.Time
	// RetryCount is how often the host, or a run, offered this batch before. On the feed its snapshots are old above 0.
	RetryCount int
	// Purpose is FromFeed by default.
	Purpose Purpose
	// RunID or InvocationID is in a poison message's evidence: what tried the document last. The other one is empty.
	RunID, InvocationID string
	// TakeOver are the statuses that a run takes although such a document is not due: failed, committed,
	// retry_scheduled. The state of a committed document stays as it is, whatever the result. Only ForRun uses it.
	TakeOver []invoice.Status
	// Rewrite writes lines again that have their document's content already. Only ForRun uses it.
	Rewrite bool
	// Overwrite are lines that an operator named: a Rewrite writes them although a person edited them, and also those
	// of a document with outcome manual all of whose lines are named. NotComparable lets a Rewrite write lines that
	// cannot be compared.
	Overwrite     []int64
	NotComparable bool
	// Releases are those of the batch's documents, for a Rewrite.
	Releases []Release
	// OneByOne sends each document in a request of its own. It is for documents whose earlier request had bad ones.
	OneByOne bool
	// DivideUntil, if set, is an earlier end of the search for bad documents.
	DivideUntil time.Time
	// OnResult, if set, is called once for each finished document that has an id, also by several goroutines at once.
	// It is not called for documents that wait for a dependency.
	OnResult func(DocumentResult)
}

// DocumentResult is the result of one document.
type DocumentResult struct {
	ID string
	// Line is the main line's id; 0 when the document names none.
	Line    int64
	Outcome invoice.Outcome
	// Kind, Code and Reason describe the failure, if there is one. Reason never contains text of a driver.
	Kind   fault.Kind
	Code   string
	Reason string
	// RetryCount is the number of retries that the document has spent. Again is true when another one is scheduled.
	RetryCount int
	Again      bool
}

// Purpose is the source of a batch. It decides which documents are taken.
type Purpose string

// The purposes.
const (
	// FromFeed: the change feed. Only its batches measure the feed's lag.
	FromFeed Purpose = ""
	// FromTimer: the recovery timer, which has just read the documents.
	FromTimer Purpose = "timer"
	// ForRun: a batch of a run. It takes what is due and the statuses of Delivery.TakeOver. A failed document starts a
	// new budget in the patch that records its outcome; it is never pending in between.
	ForRun Purpose = "run"
)

// Report counts the results of a batch. Outcomes counts every document once.
type Report struct {
	// Documents is the size of the batch.
	Documents int
	// Outcomes counts documents by outcome. Shadow has outcomes of its own.
	Outcomes map[invoice.Outcome]int
	// Kinds counts the failures of documents by kind.
	Kinds map[string]int
	// SQLRequests and SQL are the requests to SQL and their time. Reads and Writes are the operations on Cosmos DB, and
	// Cosmos is their time.
	SQLRequests, Reads, Writes int
	SQL, Cosmos                time.Duration
	// Shadow is true when nothing was written or recorded. Columns then counts, by column ("IVCE_DTL.UNSPSC_CD"), the
	// documents whose lines have another value.
	Shadow  bool
	Columns map[string]int
	// Lag is the time from the oldest document's _ts to the end of this batch.
	Lag time.Duration
}

// takesOver reports whether the batch takes a document of this status although it is not due.
func (in Delivery) takesOver(status invoice.Status) bool {
	return in.Purpose == ForRun && slices.Contains(in.TakeOver, status)
}

// LeavesAlone gives the outcome of a committed document that the batch leaves alone, and why: a person repaired its
// lines, or it has no place among the results of its lines. Both are empty for every other document.
func (in Delivery) LeavesAlone(d invoice.Document) (invoice.Outcome, string) {
	repaired := d.State.Outcome == invoice.OutcomeManual &&
		slices.ContainsFunc(append([]int64{d.Main}, d.Duplicates...), func(line int64) bool {
			return !slices.Contains(in.Overwrite, line)
		})
	switch {
	case !in.takesOver(invoice.Committed) || d.State.Status != invoice.Committed:
	case repaired:
		return invoice.OutcomeManual, "a person repaired its lines and marked it as committed"
	case d.NeedsVersion: // with a version of today it would be the newest for ever
		return invoice.OutcomeNotComparable, "its id has no time, so its place among other results is unknown"
	}
	return "", ""
}

// mode is the effect of the batch's requests.
func (in Delivery) mode() Mode {
	if in.Rewrite && in.Purpose == ForRun {
		return Rewrite
	}
	return Write
}
