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
	// SubjectLeft is a line that is left (Left), with the newest committed document that names it.
	SubjectLeft Subject = "left"
)

// Cell is a state of what is compared.
type Cell struct {
	Document DocState
	Ledger   LedgerState
	Rows     RowState
}

// Rule is a row of the table. It matches a cell whose states are among its own; an empty list matches any.
type Rule struct {
	Subject   Subject
	Documents []DocState
	Ledgers   []LedgerState
	Rows      []RowState
	// Class is what a cell is. Mends: the night writes it again.
	Class Class
	Mends bool
	// Impossible: no combination of documents and rows gives such a cell.
	Impossible bool
	// Because is the reason, for docs/findings.md.
	Because string
}

// Judge returns the first rule that matches a cell. Errors by kind: internal, code "impossible_cell", also for states
// that do not exist.
func Judge(s Subject, c Cell) (Rule, error) {
	rules := Rules()
	i := slices.IndexFunc(rules, func(r Rule) bool { return r.matches(s, c) })
	switch {
	case i < 0 || !c.exists():
		return Rule{}, impossible(s, c, "no rule has it")
	case rules[i].Impossible:
		return Rule{}, impossible(s, c, rules[i].Because)
	}
	return rules[i], nil
}

const codeImpossible = "impossible_cell"

func impossible(s Subject, c Cell, why string) error {
	return fault.New(fault.Internal, "reconcile: judge", codeImpossible,
		"a %s with document %s, ledger %s, rows %s: %s", s, c.Document, c.Ledger, c.Rows, why)
}

func (r Rule) matches(s Subject, c Cell) bool {
	return r.Subject == s && among(r.Documents, c.Document) && among(r.Ledgers, c.Ledger) && among(r.Rows, c.Rows)
}

func (c Cell) exists() bool {
	return slices.Contains(docStates(), c.Document) && slices.Contains(ledgerStates(), c.Ledger) &&
		slices.Contains(rowStates(), c.Rows)
}

func among[S ~string](list []S, s S) bool { return len(list) == 0 || slices.Contains(list, s) }

// Rules is the table. For each subject the first rule that matches a cell decides.
func Rules() []Rule {
	return slices.Concat(lineRules(), linkRules(), leftRules())
}

// compared are the states of rows that only a ledger row with hashes gives.
func compared() []RowState { return []RowState{RowsSame, RowsReviewed, RowsEdited, RowsNoTracking} }

// sent are documents that are committed and whose content belongs into SQL.
func sent() []DocState { return []DocState{DocCommitted, DocCommittedBefore} }

// byHand are documents that say that a person repaired their lines. A night writes over none, audited or not: after a
// restore the entries may be lost.
func byHand() []DocState { return []DocState{DocManual, DocUnaudited} }

func lineRules() []Rule {
	return []Rule{
		{
			Subject: SubjectLine, Ledgers: []LedgerState{LedgerNone, LedgerMarked}, Rows: compared(), Impossible: true,
			Because: "without a ledger row, and with a mark, there are no hashes to compare with",
		},
		{
			Subject: SubjectLine, Ledgers: []LedgerState{LedgerNewer, LedgerOlder, LedgerDropped, LedgerLost},
			Impossible: true, Because: "a line is looked at with the document that its ledger row names",
		},
		{
			Subject: SubjectLine, Ledgers: []LedgerState{LedgerNone}, Class: Consistent,
			Because: "nothing was written to the line",
		},
		{
			Subject: SubjectLine, Documents: []DocState{DocManual},
			Rows: []RowState{RowsEdited, RowsMissing, RowsNoTracking}, Class: Consistent,
			Because: "a person repaired the line by hand and said so",
		},
		{Subject: SubjectLine, Rows: []RowState{RowsSame}, Class: Consistent, Because: "both rows are as written"},
		{
			Subject: SubjectLine, Rows: []RowState{RowsReviewed}, Class: Reviewed,
			Because: "only the status differs, and no document gives such a one",
		},
		{
			Subject: SubjectLine, Rows: []RowState{RowsArchived}, Class: Archived,
			Because: "it was written before `LINES_KEPT_DAYS`",
		},
		{
			Subject: SubjectLine, Rows: []RowState{RowsMissing}, Class: RowMissing,
			Because: "IVCE_DTL had a row when the line was written",
		},
		{
			Subject: SubjectLine, Documents: sent(), Ledgers: []LedgerState{LedgerSame, LedgerOther},
			Rows:  []RowState{RowsNoTracking},
			Class: TrackingMissing, Mends: true,
			Because: "its other row is as written, so nothing of a person's is lost",
		},
		{
			Subject: SubjectLine, Rows: []RowState{RowsNoTracking}, Class: TrackingMissing,
			Because: "its document is gone or not committed, so it is not written again",
		},
		{
			Subject: SubjectLine, Rows: []RowState{RowsEdited}, Class: Edited,
			Because: "a value other than the status is not what was written",
		},
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
			Subject: SubjectLink, Ledgers: []LedgerState{LedgerDropped, LedgerLost}, Impossible: true,
			Because: "a line that its document does not name is looked at by itself",
		},
		{
			Subject: SubjectLink, Documents: []DocState{DocOther, DocManual}, Class: Consistent,
			Because: "such a document promises nothing about its lines",
		},
		{
			Subject: SubjectLink, Documents: []DocState{DocUnaudited}, Class: MarkWithoutAudit,
			Because: "whoever may write the container can write such an outcome; a person's is audited",
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
			Subject: SubjectLink, Documents: sent(), Rows: []RowState{RowsArchived}, Class: Archived,
			Because: "no row is left for the content",
		},
		{
			Subject: SubjectLink, Documents: sent(), Ledgers: []LedgerState{LedgerOlder},
			Rows:  []RowState{RowsSame, RowsReviewed},
			Class: Stale, Mends: true, Because: "an older document has the line, and nobody edited it",
		},
		{
			Subject: SubjectLink, Documents: sent(), Ledgers: []LedgerState{LedgerOther},
			Rows:  []RowState{RowsSame, RowsReviewed},
			Class: Stale, Mends: true, Because: "the document changed after it was written, and nobody edited the line",
		},
		{
			Subject: SubjectLink, Documents: sent(), Ledgers: []LedgerState{LedgerOlder}, Class: Stale,
			Because: "as above, and a person may have edited the line",
		},
		{
			Subject: SubjectLink, Documents: sent(), Ledgers: []LedgerState{LedgerOther, LedgerMarked}, Class: Stale,
			Because: "as above, and a person may have edited the line, or it has the document's mark",
		},
		{
			Subject: SubjectLink, Documents: []DocState{DocCommitted}, Ledgers: []LedgerState{LedgerNone},
			Rows:  []RowState{RowsUnknown},
			Class: NotInLedger, Mends: true,
			Because: "it was committed after the adoption, so this product's write is missing",
		},
		{
			Subject: SubjectLink, Documents: sent(), Ledgers: []LedgerState{LedgerNone}, Class: NotInLedger,
			Because: "it was committed before the adoption, or IVCE_DTL has no such line",
		},
	}
}

func leftRules() []Rule {
	return []Rule{
		{
			Subject: SubjectLeft, Ledgers: []LedgerState{
				LedgerNone, LedgerSame, LedgerOther, LedgerMarked, LedgerNewer, LedgerOlder, LedgerUnknown,
			},
			Impossible: true, Because: "the document of such a line is gone, or does not name it",
		},
		{
			Subject: SubjectLeft, Documents: []DocState{DocUnordered}, Impossible: true,
			Because: "only documents with an order are looked for",
		},
		{
			Subject: SubjectLeft, Rows: []RowState{RowsMissing, RowsArchived}, Class: Consistent,
			Because: "IVCE_DTL has no such line: `row_missing` and `archived` tell of it",
		},
		{
			Subject: SubjectLeft, Documents: []DocState{DocOther}, Class: NoDocument,
			Because: "nothing else belongs there",
		},
		{
			Subject: SubjectLeft, Documents: sent(), Ledgers: []LedgerState{LedgerDropped},
			Rows:  []RowState{RowsSame, RowsReviewed, RowsNoTracking},
			Class: NotNamed, Mends: true, Because: "its document dropped it, and nobody edited it",
		},
		{
			Subject: SubjectLeft, Class: NotNamed,
			Because: "a person may have edited the line, or decided about a document",
		},
	}
}
