package reconcile

import (
	"time"

	"sqlwriter/internal/invoice"
	"sqlwriter/internal/run"
)

// DocState is the state of a document for a comparison.
type DocState string

// The states of a document.
const (
	// DocOther: it promises nothing about its lines: it waits, failed, does not exist, or is left alone, as one of
	// another environment.
	DocOther DocState = "other"
	// DocCommitted: it is committed, after the ledger was adopted.
	DocCommitted DocState = "committed"
	// DocCommittedBefore: it was committed before the ledger was adopted, or at a time that cannot be read.
	DocCommittedBefore DocState = "committed_before"
	// DocUnordered: it is committed and has no version, or one from the future. Only another writer commits such a
	// document.
	DocUnordered DocState = "unordered"
	// DocManual: it is committed because a person said so, and the audit log has the entry.
	DocManual DocState = "manual"
	// DocUnaudited: it says so itself, and the audit log does not: whoever may write the container can.
	DocUnaudited DocState = "unaudited"
)

func docStates() []DocState {
	return []DocState{DocOther, DocCommitted, DocCommittedBefore, DocUnordered, DocManual, DocUnaudited}
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
	// LedgerUnknown: it names this document, and its content cannot be compared: a HashVersion
	// without a Recipe, an adoption without proof, another version, or a document that is gone.
	LedgerUnknown LedgerState = "unknown"
	// LedgerDropped: it names a document that was committed and does not name the line. Only SubjectLeft has it.
	LedgerDropped LedgerState = "dropped"
	// LedgerLost: it names a document that is gone, or one that does not name the line and that a person or another
	// writer made committed. Only SubjectLeft has it.
	LedgerLost LedgerState = "lost"
)

func ledgerStates() []LedgerState {
	return []LedgerState{
		LedgerNone, LedgerSame, LedgerOther, LedgerMarked, LedgerNewer, LedgerOlder, LedgerUnknown, LedgerDropped,
		LedgerLost,
	}
}

func rowStates() []RowState {
	return []RowState{RowsSame, RowsReviewed, RowsEdited, RowsNoTracking, RowsMissing, RowsArchived, RowsUnknown}
}

// Circumstances are what a look knows beside the document.
type Circumstances struct {
	// SysName is the environment.
	SysName string
	// Reader reads the documents.
	Reader invoice.Reader
	Now    time.Time
	// AdoptedAt is that of Findings.
	AdoptedAt time.Time
	// Marks are those of Findings, of the documents that are looked at.
	Marks map[run.Mark]run.Audit
}

// DocState is the state of a document; the zero document stands for one that does not exist.
func (c Circumstances) DocState(d invoice.Document) DocState {
	us, known := invoice.TimeOfID(d.State.CommittedAt)
	switch {
	case d.SysName != c.SysName || d.State.Status != invoice.Committed:
		return DocOther
	case d.State.Outcome == invoice.OutcomeManual:
		if _, audited := c.Marks[run.Mark{Document: d.ID, CommittedAt: d.State.CommittedAt}]; !audited {
			return DocUnaudited
		}
		return DocManual
	case d.NeedsVersion || d.Version.US <= 0 || d.Version.Future(c.Now):
		return DocUnordered
	case c.AdoptedAt.IsZero() || !known || time.UnixMicro(us).Before(c.AdoptedAt):
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
	case l.Version != d.Version:
		return LedgerUnknown
	}
	hash, known := d.Hash, l.HashVersion == d.Mapping.Version()
	if !known && l.Recipe != nil { // else also adopt.Unproven
		hash, known = l.Recipe.ContentHash(d)
	}
	switch {
	case !known:
		return LedgerUnknown
	case l.Hash == hash:
		return LedgerSame
	}
	return LedgerOther
}

// ledgerFailed is the outcome of a failure mark.
const ledgerFailed = "failed"

// Marked reports whether it is a failure mark.
func (l Ledger) Marked() bool { return l.Outcome == ledgerFailed }
