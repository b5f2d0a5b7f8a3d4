package reconcile

import "slices"

// Rewritable returns the classes of findings that a rewrite of the finding's line mends: each names a committed document and a line.
func Rewritable() []Class {
	return []Class{RowMissing, TrackingMissing, Edited, Stale, NotInLedger}
}

// Overwrites reports whether a rewrite writes the line of such a finding only when an operator names it, because its row is not what was
// written. Naming it gives it the document's status too.
func (c Class) Overwrites() bool { return slices.Contains([]Class{RowMissing, Edited, Stale}, c) }
