package reconcile

import (
	"time"

	"sqlwriter/internal/commit"
	"sqlwriter/internal/invoice"
)

// DocState is the state of a document for a comparison.
type DocState string

// The states of a document.
const (
	// DocGone: it does not exist.
	DocGone DocState = "gone"
	// DocNotOffered: it is left alone: of another environment, without a status, or with an unknown one.
	DocNotOffered DocState = "not_offered"
	// DocWaiting: it is to be written.
	DocWaiting DocState = "waiting"
	// DocOverdue: it waits, and was due for an hour or more in which the flow ran.
	DocOverdue DocState = "overdue"
	// DocCommitted: it is committed, after the ledger was adopted.
	DocCommitted DocState = "committed"
	// DocCommittedBefore: it was committed before the ledger was adopted, or at a time that cannot be read.
	DocCommittedBefore DocState = "committed_before"
	// DocUnordered: it is committed and has no version, or one from the future. Only another writer commits such a document.
	DocUnordered DocState = "unordered"
	// DocManual: it is committed because a person said so.
	DocManual DocState = "manual"
	// DocFailed: it failed, and its lines have its mark.
	DocFailed DocState = "failed"
	// DocUnmarkable: it failed, and its lines cannot get a mark (invoice.Document.Unmarkable).
	DocUnmarkable DocState = "unmarkable"
)

func docStates() []DocState {
	return []DocState{DocGone, DocNotOffered, DocWaiting, DocOverdue, DocCommitted, DocCommittedBefore, DocUnordered, DocManual, DocFailed, DocUnmarkable}
}

// LedgerState is a line's ledger row as a document sees it.
type LedgerState string

// The states of a ledger row.
const (
	// LedgerNone: there is none.
	LedgerNone LedgerState = "none"
	// LedgerSame: it names this document with this content.
	LedgerSame LedgerState = "same"
	// LedgerOther: it names this document with other content.
	LedgerOther LedgerState = "other"
	// LedgerMarked: it has the failure mark of this document.
	LedgerMarked LedgerState = "marked"
	// LedgerNewer and LedgerOlder: it names a newer document, or an older one.
	LedgerNewer LedgerState = "newer"
	LedgerOlder LedgerState = "older"
	// LedgerUnknown: it names this document, and its content cannot be compared: another HashVersion, an adoption without proof, another
	// version, or a document that is gone.
	LedgerUnknown LedgerState = "unknown"
)

func ledgerStates() []LedgerState {
	return []LedgerState{LedgerNone, LedgerSame, LedgerOther, LedgerMarked, LedgerNewer, LedgerOlder, LedgerUnknown}
}

func rowStates() []RowState {
	return []RowState{RowsSame, RowsReviewed, RowsEdited, RowsNoTracking, RowsMissing, RowsUnknown}
}

// EvidenceState is the newest evidence of a document.
type EvidenceState string

// The states of evidence.
const (
	// EvidenceThere: there is some, and the document explains it or is gone.
	EvidenceThere EvidenceState = "there"
	// EvidenceUnexplained: there is some for an hour or more, and nothing in the document says that a try failed or that it was written later.
	EvidenceUnexplained EvidenceState = "unexplained"
	// EvidenceNone: there is none, and a failed document would have some.
	EvidenceNone EvidenceState = "none"
	// EvidenceNotLooked: nobody looked, or none is to be expected: another writer failed the document, or it failed almost KeepsEvidence ago.
	EvidenceNotLooked EvidenceState = "not_looked"
)

func evidenceStates() []EvidenceState {
	return []EvidenceState{EvidenceThere, EvidenceUnexplained, EvidenceNone, EvidenceNotLooked}
}

// The times of the table, which nobody decided (docs/rules.md).
const (
	// TooLong is how long a document may be due, and evidence may be without a failed document.
	TooLong = time.Hour
	// KeepsEvidence is how long evidence is kept.
	KeepsEvidence = 365 * 24 * time.Hour
	// keptBefore is how long before a failure its evidence may have been kept.
	keptBefore = 24 * time.Hour
	// RecordedWithin is the longest time from a write to its record in the document, by two clocks. The host ends an invocation after ten
	// minutes, and starts what was lost again.
	RecordedWithin = 10*time.Minute + invoice.ClockSkew
)

// Circumstances are what a look knows beside the document.
type Circumstances struct {
	// SysName is the environment.
	SysName string
	Now     time.Time
	// FlowSince is when the flow began to run; zero while it does not, or when it is unknown.
	FlowSince time.Time
	// AdoptedAt is that of Findings.
	AdoptedAt time.Time
}

// DocState is the state of a document; found is false if it does not exist. The content is not needed, but for the difference between
// DocFailed and DocUnmarkable.
func (c Circumstances) DocState(d invoice.Document, found bool) DocState {
	switch {
	case !found:
		return DocGone
	case d.SysName != c.SysName:
		return DocNotOffered
	}
	switch d.State.Status {
	case invoice.Pending, invoice.RetryScheduled, invoice.Processing:
		return c.waiting(d)
	case invoice.Committed:
		return c.committed(d)
	case invoice.Failed:
		if d.NeedsVersion || d.Unmarkable(c.Now) != "" {
			return DocUnmarkable
		}
		return DocFailed
	}
	return DocNotOffered
}

func (c Circumstances) waiting(d invoice.Document) DocState {
	due := d.TS
	if at := d.State.RetryAfter; d.State.Status == invoice.RetryScheduled && at <= c.Now.Add(invoice.MostAhead).Unix() {
		due = max(due, at)
	}
	runs := !c.FlowSince.IsZero() && c.Now.Sub(c.FlowSince) >= TooLong
	if runs && c.Now.Sub(time.Unix(due, 0)) > TooLong {
		return DocOverdue
	}
	return DocWaiting
}

func (c Circumstances) committed(d invoice.Document) DocState {
	at, known := timeOf(d.State.CommittedAt)
	switch {
	case d.State.Outcome == commit.Manual:
		return DocManual
	case d.NeedsVersion || d.Version.US <= 0 || d.Version.Future(c.Now):
		return DocUnordered
	case c.AdoptedAt.IsZero() || !known || at.Before(c.AdoptedAt):
		return DocCommittedBefore
	}
	return DocCommitted
}

// LedgerStateOf is the state of a line's ledger row for a document; the zero document stands for one that is gone.
func LedgerStateOf(d invoice.Document, l Ledger) LedgerState {
	switch gone := d.ID == ""; {
	case l.Outcome == "":
		return LedgerNone
	case (gone || l.Version.Key == d.Version.Key) && l.Marked():
		return LedgerMarked
	case gone:
		return LedgerUnknown
	case l.Version.Key != d.Version.Key && l.Version.Compare(d.Version) > 0:
		return LedgerNewer
	case l.Version.Key != d.Version.Key:
		return LedgerOlder
	case l.Version != d.Version || l.HashVersion != invoice.HashVersion: // also adopt.Unproven
		return LedgerUnknown
	case l.Hash == d.Hash:
		return LedgerSame
	}
	return LedgerOther
}

// ledgerFailed is the outcome of a failure mark.
const ledgerFailed = "failed"

// Marked reports whether it is a failure mark.
func (l Ledger) Marked() bool { return l.Outcome == ledgerFailed }

// Fresh reports whether the line was written so shortly before now that the write may not be recorded in its document yet. A time that is
// far ahead of now is no sign of that.
func (l Ledger) Fresh(now time.Time) bool {
	return !l.WrittenAt.IsZero() && now.Sub(l.WrittenAt).Abs() < RecordedWithin
}

// EvidenceState is the state of a document's newest episode; found is false if there is none.
func (c Circumstances) EvidenceState(d invoice.Document, newest Episode, found bool) EvidenceState {
	failedAt, known := timeOf(d.State.FailedAt)
	if !known {
		failedAt = time.Unix(d.TS, 0)
	}
	switch {
	case !found && (d.State.LastErrorKind == "" || c.Now.Sub(failedAt) > KeepsEvidence-keptBefore): // other writers write no kinds
		return EvidenceNotLooked
	case !found:
		return EvidenceNone
	case d.ID == "" || c.Now.Sub(newest.At) < TooLong || explains(d, newest):
		return EvidenceThere
	}
	return EvidenceUnexplained
}

// explains reports whether a document failed, had failed tries, or was committed after the episode. Evidence is kept before a document fails,
// so another instance may commit it, or a person mark it, a moment before or after.
func explains(d invoice.Document, e Episode) bool {
	if s := d.State; s.Status == invoice.Failed || s.FailedAt != "" || s.ReprocessCount > 0 || len(s.Attempts) > 0 {
		return true
	}
	at, known := timeOf(d.State.CommittedAt)
	if !known {
		at = time.Unix(d.TS, 0)
	}
	return d.State.Status == invoice.Committed && at.Add(invoice.ClockSkew).After(e.At)
}

// timeOf reads a time in sql_writer.
func timeOf(stamp string) (time.Time, bool) {
	us, ok := invoice.TimeOfID(stamp)
	return time.UnixMicro(us), ok
}
