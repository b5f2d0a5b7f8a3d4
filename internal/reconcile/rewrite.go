package reconcile

import (
	"sqlwriter/internal/commit"
	"sqlwriter/internal/invoice"
)

// Has reports whether a ledger row of the item's document has its content, by the recipe of the row's version.
func (l Ledger) Has(it commit.Item) bool {
	if l.Recipe == nil || l.Version != it.Version {
		return false
	}
	hash, known := l.Recipe.ContentHash(invoice.Document{Main: it.Main, Duplicates: it.Duplicates, Values: it.Values})
	return known && l.Hash == hash
}

// LeftAlone is the verdict of a rewrite on a line that it does not write, as commit.Sink says, and why; empty for one
// that it writes. The line has a ledger row and a detail row. want are the values that the rewrite would write.
func (l Line) LeftAlone(it commit.Item, want []invoice.Value) (verdict invoice.Outcome, why string) {
	switch {
	case it.Overwrites(l.ID):
	case l.Rows == RowsEdited:
		return invoice.OutcomeEdited, "somebody edited it since it was written"
	case it.NotComparable:
	case l.Rows == RowsUnknown && l.Ledger.Outcome == "applied":
		return invoice.OutcomeNotComparable, "another mapping wrote it, and somebody may have edited it"
	case l.Rows == RowsUnknown:
		return invoice.OutcomeNotComparable, "nothing tells what was written, and somebody may have edited it"
	case l.Ledger.Recipe.Replaces(l.Values, want):
		return invoice.OutcomeNotComparable, "it has a value that somebody else wrote: its mapping did not have the column"
	}
	return "", ""
}
