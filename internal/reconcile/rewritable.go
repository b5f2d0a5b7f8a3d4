package reconcile

import "slices"

// Rewritable returns the classes of findings that a rewrite of the finding's line mends: each names a committed document and a line.
func Rewritable() []Class {
	return []Class{RowMissing, TrackingMissing, Edited, Stale, NotInLedger}
}

// Overwrites reports whether a rewrite writes the finding's line only when an operator names it, because its row is not what was written.
// Naming it gives it the document's status too. What the timer may mend has rows as they were written, so a rewrite of it leaves an
// edit alone that came after the comparison.
func (f Finding) Overwrites() bool {
	return f.Mend == ByPeople && slices.Contains([]Class{RowMissing, Edited, Stale}, f.Class)
}
