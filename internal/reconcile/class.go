package reconcile

import (
	"slices"
	"strconv"
	"strings"
)

// Class says how something that was compared is: a finding, or one of the classes that are only counted.
type Class string

// The findings.
const (
	// RowMissing: the ledger names a line that IVCE_DTL does not have.
	RowMissing Class = "row_missing"
	// TrackingMissing: the line has no row in IVCE_TRKG_MSTR; its other row is as written.
	TrackingMissing Class = "tracking_missing"
	// Edited: a value other than the status is not what was written: people's allowed work.
	Edited Class = "edited"
	// Stale: the line has older content than a committed document.
	Stale Class = "stale"
	// NotInLedger: a committed document names a line that the ledger does not have.
	NotInLedger Class = "not_in_ledger"
	// NotNamed: the document in a line's ledger row does not name the line, and another committed one does.
	NotNamed Class = "not_named"
	// NoDocument: as NotNamed, and no committed document names the line. There is nothing to do about it.
	NoDocument Class = "no_document"
	// MarkWithoutAudit: a document says that a person repaired its lines by hand, and the audit log does not.
	MarkWithoutAudit Class = "mark_without_audit"
)

// The classes that are only counted.
const (
	Consistent Class = "consistent"
	// Reviewed: only the status differs; that is the stewards' work.
	Reviewed Class = "reviewed"
	// NotComparable: the ledger does not say what was written: an adopted line, or one of a HashVersion that the
	// mapping in use cannot compare. Comparison.Versions has the latter.
	NotComparable Class = "not_comparable"
	// Archived: the line's row is gone, and it was written longer ago than the user keeps rows.
	Archived Class = "archived"
	// Changing: it changed between the two looks. The next comparison looks again.
	Changing Class = "changing"
	// Impossible: its states exclude each other: a mistake of this program.
	Impossible Class = "impossible"
	// NewEdits are those of Edited that no earlier comparison found.
	NewEdits Class = "edited_new"
	// Unlisted are findings that ask for a person and have no row, because their class has MaxFindings of them.
	Unlisted Class = "unlisted"
)

// FindingClasses returns the classes of findings in alphabetical order.
func FindingClasses() []Class { return classesThat(func(m Meaning) bool { return m.Finding }) }

// MendedClasses returns those of FindingClasses that the night writes again.
func MendedClasses() []Class { return classesThat(func(m Meaning) bool { return m.Mends != "" }) }

// notComparableOf is the class that counts the lines of a HashVersion.
func notComparableOf(version int) Class { return NotComparable + Class("/"+strconv.Itoa(version)) }

// again reports whether what the class counts is counted in another class, too.
func (c Class) again() bool {
	return c == NewEdits || c == Unlisted || strings.HasPrefix(string(c), string(NotComparable)+"/")
}

func classesThat(is func(Meaning) bool) (classes []Class) {
	for _, m := range Meanings() {
		if is(m) {
			classes = append(classes, m.Class)
		}
	}
	slices.Sort(classes)
	return classes
}

// ofLine reports whether a finding of the class is about a line of the ledger: SubjectLine and SubjectLeft. The
// others are of SubjectLink.
func (c Class) ofLine() bool {
	return c == RowMissing || c == TrackingMissing || c == Edited || c.ofLeft()
}

// ofLeft reports whether a finding of the class is of SubjectLeft.
func (c Class) ofLeft() bool { return c == NotNamed || c == NoDocument }

// Asks reports whether a finding of the class asks for a person, unless the night mends it. The others are listed.
func (c Class) Asks() bool { return c != Edited && c != NoDocument }
