package reconcile

import (
	"slices"
)

// Class says how something that was compared is: a finding, or one of the classes that are only counted.
type Class string

// The findings.
const (
	// RowMissing: the ledger names a line that IVCE_DTL does not have.
	RowMissing Class = "row_missing"
	// TrackingMissing: the line has no row in IVCE_TRKG_MSTR; its other row is as written.
	TrackingMissing Class = "tracking_missing"
	// Edited: a value other than the status is not what was written.
	Edited Class = "edited"
	// Stale: the line has older content than a committed document.
	Stale Class = "stale"
	// NotInLedger: a committed document names a line that the ledger does not have.
	NotInLedger Class = "not_in_ledger"
	// FailedUnmarked: a failed document's line has no failure mark.
	FailedUnmarked Class = "failed_unmarked"
	// FailedButWritten: a failed document's content is in SQL.
	FailedButWritten Class = "failed_but_written"
	// FailedWithoutEvidence: a failed document has no evidence.
	FailedWithoutEvidence Class = "failed_without_evidence"
	// EvidenceWithoutFailed: there is evidence of a document that never failed.
	EvidenceWithoutFailed Class = "evidence_without_failed"
	// PendingTooLong: a document waits, and is due for an hour or more.
	PendingTooLong Class = "pending_too_long"
	// LeftBehind: a lock of the host's trigger that no start of a host removed.
	LeftBehind Class = "left_behind"
)

// The classes that are only counted.
const (
	Consistent Class = "consistent"
	// Reviewed: only the status differs; that is the stewards' work.
	Reviewed Class = "reviewed"
	// NotComparable: the ledger does not say what was written: an adopted line, or one of another HashVersion.
	NotComparable Class = "not_comparable"
	// DocumentGone: the document that the ledger or the evidence names does not exist any more.
	DocumentGone Class = "document_gone"
	// Changing: it changed each time it was looked at. The next run looks again.
	Changing Class = "changing"
	// Impossible: its states exclude each other: a mistake of this program.
	Impossible Class = "impossible"
	// GoneNow: a finding of an earlier run that is no longer true.
	GoneNow Class = "gone"
)

// FindingClasses returns the classes of findings in alphabetical order.
func FindingClasses() (classes []Class) {
	for _, m := range Meanings() {
		if m.Finding {
			classes = append(classes, m.Class)
		}
	}
	slices.Sort(classes)
	return classes
}
