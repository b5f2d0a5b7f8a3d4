package reconcile

import (
	"slices"

	"sqlwriter/internal/fault"
)

// Subject is what a cell is about.
type Subject string

// The subjects.
const (
	// SubjectLine is a line of the ledger, with the document that the ledger names.
	SubjectLine Subject = "line"
	// SubjectLink is a document and one of its lines, whatever the ledger names for the line.
	SubjectLink Subject = "link"
	// SubjectDocument is a document and its evidence.
	SubjectDocument Subject = "document"
)

// Cell is a state of what is compared.
type Cell struct {
	Document DocState
	Ledger   LedgerState
	Rows     RowState
	Evidence EvidenceState
	// Fresh says that the line was written a moment ago: Ledger.Fresh.
	Fresh bool
}

// Rule is a row of the table. It matches a cell whose states are among its own; an empty list matches any.
type Rule struct {
	Subject   Subject
	Documents []DocState
	Ledgers   []LedgerState
	Rows      []RowState
	Evidence  []EvidenceState
	// Class is what a cell is, and Mend how the timer mends it.
	Class Class
	Mend  Mend
	// Settled: a fresh cell is Changing instead, because the write that made it may not be recorded in its document yet.
	Settled bool
	// Impossible: no combination of documents and rows gives such a cell.
	Impossible bool
	// Because is the reason, for docs/findings.md.
	Because string
}

// Judge returns the first rule that matches a cell. For a fresh cell of a rule that is Settled, its Class is Changing and its Mend ByPeople.
// Errors by kind: internal, code "impossible_cell", also for states that do not exist.
func Judge(s Subject, c Cell) (Rule, error) {
	rules := Rules()
	i := slices.IndexFunc(rules, func(r Rule) bool { return r.matches(s, c) })
	switch {
	case i < 0 || !c.exists():
		return Rule{}, impossible(s, c, "no rule has it")
	case rules[i].Impossible:
		return Rule{}, impossible(s, c, rules[i].Because)
	case rules[i].Settled && c.Fresh:
		rules[i].Class, rules[i].Mend = Changing, ByPeople
	}
	return rules[i], nil
}

func impossible(s Subject, c Cell, why string) error {
	return fault.New(fault.Internal, "reconcile: judge", "impossible_cell", "a %s with document %s, ledger %s, rows %s, evidence %s: %s",
		s, c.Document, c.Ledger, c.Rows, c.Evidence, why)
}

func (r Rule) matches(s Subject, c Cell) bool {
	return r.Subject == s && among(r.Documents, c.Document) && among(r.Ledgers, c.Ledger) && among(r.Rows, c.Rows) && among(r.Evidence, c.Evidence)
}

func (c Cell) exists() bool {
	return slices.Contains(docStates(), c.Document) && slices.Contains(ledgerStates(), c.Ledger) &&
		slices.Contains(rowStates(), c.Rows) && slices.Contains(evidenceStates(), c.Evidence)
}

func among[S ~string](list []S, s S) bool { return len(list) == 0 || slices.Contains(list, s) }

// Rules is the table. For each subject the first rule that matches a cell decides.
func Rules() []Rule {
	return slices.Concat(lineRules(), linkRules(), documentRules())
}

// compared are the states of rows that only a ledger row with hashes gives.
func compared() []RowState { return []RowState{RowsSame, RowsReviewed, RowsEdited, RowsNoTracking} }

// sent are documents that are committed and whose content belongs into SQL.
func sent() []DocState { return []DocState{DocCommitted, DocCommittedBefore} }

func lineRules() []Rule {
	return []Rule{
		{
			Subject: SubjectLine, Ledgers: []LedgerState{LedgerNone, LedgerMarked}, Rows: compared(), Impossible: true,
			Because: "without a ledger row, and with a mark, there are no hashes to compare with",
		},
		{
			Subject: SubjectLine, Ledgers: []LedgerState{LedgerNewer, LedgerOlder}, Impossible: true,
			Because: "a line is looked at with the document that its ledger row names",
		},
		{Subject: SubjectLine, Ledgers: []LedgerState{LedgerNone}, Class: Consistent, Because: "nothing was written to the line"},
		{
			Subject: SubjectLine, Documents: []DocState{DocManual}, Rows: []RowState{RowsEdited, RowsMissing, RowsNoTracking}, Class: Consistent,
			Because: "a person repaired the line by hand and said so",
		},
		{Subject: SubjectLine, Rows: []RowState{RowsSame}, Class: Consistent, Because: "both rows are as written"},
		{Subject: SubjectLine, Rows: []RowState{RowsReviewed}, Class: Reviewed, Because: "only the status differs, and no document gives such a one"},
		{Subject: SubjectLine, Rows: []RowState{RowsMissing}, Class: RowMissing, Because: "IVCE_DTL had a row when the line was written"},
		{
			Subject: SubjectLine, Documents: sent(), Ledgers: []LedgerState{LedgerSame, LedgerOther}, Rows: []RowState{RowsNoTracking},
			Class: TrackingMissing, Mend: WithRewrite, Because: "its other row is as written, so nothing of a person's is lost",
		},
		{
			Subject: SubjectLine, Rows: []RowState{RowsNoTracking}, Class: TrackingMissing,
			Because: "its document is gone or not committed, so it is not written again",
		},
		{Subject: SubjectLine, Rows: []RowState{RowsEdited}, Class: Edited, Because: "a value other than the status is not what was written"},
		{
			Subject: SubjectLine, Ledgers: []LedgerState{LedgerMarked}, Class: Consistent,
			Because: "a mark writes the status alone, and stewards change that",
		},
		{Subject: SubjectLine, Class: NotComparable, Because: "the ledger does not say what was written"},
	}
}

func linkRules() []Rule {
	return []Rule{
		{
			Subject: SubjectLink, Ledgers: []LedgerState{LedgerNone, LedgerMarked}, Rows: compared(), Impossible: true,
			Because: "without a ledger row, and with a mark, there are no hashes to compare with",
		},
		{
			Subject: SubjectLink, Documents: []DocState{DocGone, DocNotOffered, DocWaiting, DocOverdue, DocManual, DocUnmarkable}, Class: Consistent,
			Because: "such a document promises nothing about its lines",
		},
		{
			Subject: SubjectLink, Documents: []DocState{DocUnordered}, Class: NotComparable,
			Because: "another writer committed it, and the ledger takes no document without an order",
		},
		{
			Subject: SubjectLink, Documents: sent(), Ledgers: []LedgerState{LedgerSame, LedgerNewer}, Class: Consistent,
			Because: "the line has its content, or newer content",
		},
		{
			Subject: SubjectLink, Documents: sent(), Ledgers: []LedgerState{LedgerUnknown}, Class: NotComparable,
			Because: "the ledger names the document, and cannot say with which content",
		},
		{
			Subject: SubjectLink, Documents: sent(), Ledgers: []LedgerState{LedgerOlder}, Rows: []RowState{RowsSame, RowsReviewed},
			Class: Stale, Mend: WithWrite, Because: "an older document has the line, and nobody edited it",
		},
		{
			Subject: SubjectLink, Documents: sent(), Ledgers: []LedgerState{LedgerOther}, Rows: []RowState{RowsSame, RowsReviewed},
			Class: Stale, Mend: WithWrite, Settled: true, Because: "the document changed after it was written, and nobody edited the line",
		},
		{
			Subject: SubjectLink, Documents: sent(), Ledgers: []LedgerState{LedgerOlder}, Class: Stale,
			Because: "as above, and a person may have edited the line",
		},
		{
			Subject: SubjectLink, Documents: sent(), Ledgers: []LedgerState{LedgerOther, LedgerMarked}, Class: Stale, Settled: true,
			Because: "as above, and a person may have edited the line, or it has the document's mark",
		},
		{
			Subject: SubjectLink, Documents: []DocState{DocCommitted}, Ledgers: []LedgerState{LedgerNone}, Rows: []RowState{RowsUnknown},
			Class: NotInLedger, Mend: WithWrite, Because: "it was committed after the adoption, so this product's write is missing",
		},
		{
			Subject: SubjectLink, Documents: sent(), Ledgers: []LedgerState{LedgerNone}, Class: NotInLedger,
			Because: "it was committed before the adoption, or IVCE_DTL has no such line",
		},
		{
			Subject: SubjectLink, Documents: []DocState{DocFailed}, Rows: []RowState{RowsMissing}, Class: Consistent,
			Because: "a mark leaves out a line that IVCE_DTL does not have",
		},
		{
			Subject: SubjectLink, Documents: []DocState{DocFailed}, Ledgers: []LedgerState{LedgerMarked, LedgerNewer}, Class: Consistent,
			Because: "the line has its mark, or newer content",
		},
		{
			Subject: SubjectLink, Documents: []DocState{DocFailed}, Ledgers: []LedgerState{LedgerSame}, Class: FailedButWritten, Settled: true,
			Because: "a write of the content would have made the document committed",
		},
		{
			Subject: SubjectLink, Documents: []DocState{DocFailed}, Ledgers: []LedgerState{LedgerOther, LedgerUnknown}, Class: FailedUnmarked, Settled: true,
			Because: "a mark replaces earlier content of the same document",
		},
		{
			Subject: SubjectLink, Documents: []DocState{DocFailed}, Class: FailedUnmarked,
			Because: "a mark is written before the document becomes failed",
		},
	}
}

func documentRules() []Rule {
	return []Rule{
		{
			Subject: SubjectDocument, Documents: []DocState{DocFailed, DocUnmarkable}, Evidence: []EvidenceState{EvidenceUnexplained}, Impossible: true,
			Because: "a failed document explains its evidence",
		},
		{Subject: SubjectDocument, Documents: []DocState{DocGone}, Class: DocumentGone, Because: "a container may expire its documents"},
		{
			Subject: SubjectDocument, Documents: []DocState{DocOverdue}, Class: PendingTooLong,
			Because: "the flow ran for an hour, and the document was due all the time",
		},
		{
			Subject: SubjectDocument, Documents: []DocState{DocWaiting}, Class: Consistent,
			Because: "evidence is kept before a document fails, and a mark that lost a race is tried again",
		},
		{
			Subject: SubjectDocument, Documents: []DocState{DocFailed, DocUnmarkable}, Evidence: []EvidenceState{EvidenceNone}, Class: FailedWithoutEvidence,
			Because: "evidence is kept before a document fails",
		},
		{
			Subject: SubjectDocument, Evidence: []EvidenceState{EvidenceUnexplained}, Class: EvidenceWithoutFailed,
			Because: "nothing in the document says that it ever failed, or was written later",
		},
		{Subject: SubjectDocument, Class: Consistent, Because: "status and evidence fit"},
	}
}
