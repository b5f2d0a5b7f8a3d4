package shared

import (
	"fmt"
	"strings"

	"sqlwriter/internal/commit"
	"sqlwriter/internal/invoice"
)

// Present is a line that has a ledger row and that a rewrite would write, as it is now.
type Present struct {
	// HashVersion and the row hashes are the ledger's; zero where it has NULL, as for an adopted or marked line.
	HashVersion              int
	DetailHash, TrackingHash string
	// Tracked says that the line has a tracking row.
	Tracked bool
	// Values are those of both rows, aligned with invoice.Columns() and as invoice.RowHashes had them when they were
	// written.
	Values []invoice.Value
}

// LeftAlone is the verdict on a line that a rewrite does not write, as commit.Sink says; empty for one that it writes.
func (p Present) LeftAlone(it commit.Item, line int64) invoice.Outcome {
	if it.Overwrites(line) {
		return ""
	}
	if p.HashVersion != invoice.HashVersion || p.DetailHash == "" {
		if it.NotComparable {
			return ""
		}
		return invoice.OutcomeNotComparable
	}
	if detail, tracking := invoice.RowHashes(p.Values); detail != p.DetailHash ||
		(p.Tracked && tracking != p.TrackingHash) {
		return invoice.OutcomeEdited
	}
	return ""
}

// Decimal gives a number the column table's scale. It keeps digits beyond the scale, because they differ from any
// value that we write.
func Decimal(c invoice.Column, text string) (invoice.Value, error) {
	r := invoice.Exact(text)
	if r == nil {
		return invoice.Value{}, fmt.Errorf("%d characters that are not a number", len(text))
	}
	short := r.FloatString(c.Scale)
	if again := invoice.Exact(short); again != nil && again.Cmp(r) == 0 {
		return invoice.Of(short), nil
	}
	return invoice.Of(strings.TrimRight(text, "0")), nil
}
