package invoice

import "slices"

// Outcome is what became of a document, or of one of its lines. The sink answers it, the document keeps it
// (State.Outcome), and reports and runs count documents by it. A run keeps it in a column of 20 characters.
type Outcome string

// The outcomes.
const (
	// OutcomeApplied: its content was written. Documents of one request with the same content are all applied.
	OutcomeApplied Outcome = "applied"
	// OutcomeUnchanged: an earlier request wrote the same content.
	OutcomeUnchanged Outcome = "unchanged"
	// OutcomeSuperseded: SQL has provably newer content.
	OutcomeSuperseded Outcome = "superseded"
	// OutcomeEdited: a rewrite left the line alone. A value other than the status differs from what the ledger says was
	// written. A missing tracking row is no edit.
	OutcomeEdited Outcome = "edited"
	// OutcomeNotComparable: a run left the line alone, because the ledger does not say what was written. The line was
	// adopted or marked, or another HashVersion wrote it. Of a whole document: it has no place among other results.
	OutcomeNotComparable Outcome = "not_comparable"
	// OutcomeManual: a person repaired the lines by hand and marked the document as committed.
	OutcomeManual Outcome = "manual"
	// OutcomeRetryScheduled: it was not written. A retry is recorded in it.
	OutcomeRetryScheduled Outcome = "retry_scheduled"
	// OutcomeLeft: nothing could be recorded in it. The recovery timer takes it.
	OutcomeLeft Outcome = "left"
	// OutcomeWaiting: a dependency failed or the breaker is open. Nothing was changed, and its batch is offered again.
	OutcomeWaiting Outcome = "waiting"
	// OutcomeFailed: it is a poison message, or it is committed and could not be written again.
	OutcomeFailed Outcome = "failed"
	// OutcomeMissing: the detail row does not exist. Only the sink answers it: the document then gets a retry, or
	// fails. Of a document with a missing row nothing is written. A failure mark omits only that row, and is missing
	// when all its rows are.
	OutcomeMissing Outcome = "missing"
	// OutcomeGone: the document was deleted.
	OutcomeGone Outcome = "gone"
	// OutcomeSkipped: it is another environment's, not due, done before, or has no status that the batch takes.
	OutcomeSkipped Outcome = "skipped"
	// OutcomeNotOffered: it has no status.
	OutcomeNotOffered Outcome = "not_offered"
	// OutcomeUnreadable: the element has no id, so nothing can be recorded.
	OutcomeUnreadable Outcome = "unreadable"
)

// Outcomes returns all outcomes.
func Outcomes() []Outcome {
	return []Outcome{
		OutcomeApplied, OutcomeUnchanged, OutcomeSuperseded, OutcomeEdited, OutcomeNotComparable, OutcomeManual,
		OutcomeRetryScheduled, OutcomeLeft, OutcomeWaiting, OutcomeFailed,
		OutcomeMissing, OutcomeGone, OutcomeSkipped, OutcomeNotOffered, OutcomeUnreadable,
	}
}

// Unfinished returns the outcomes that leave something to do for the document. A run with one of them has failures.
func Unfinished() []Outcome {
	return []Outcome{OutcomeFailed, OutcomeRetryScheduled, OutcomeLeft, OutcomeWaiting}
}

// Success reports whether nothing is left to do for the document.
func (o Outcome) Success() bool { return !slices.Contains(Unfinished(), o) }
