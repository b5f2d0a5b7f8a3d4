package shared

import (
	"fmt"
	"strings"

	"sqlwriter/internal/commit"
	"sqlwriter/internal/invoice"
)

// Present is a line that has a ledger row and that a rewrite would write, as it is now.
type Present struct {
	// Recipe is that of the ledger row's version; nil where nothing tells what was written, as for an adopted or marked
	// line. The hashes are the ledger's; empty where it has NULL.
	Recipe                   *invoice.Recipe
	DetailHash, TrackingHash string
	// Tracked says that the line has a tracking row.
	Tracked bool
	// Values are those of both rows, aligned with Mapping.Columns and as Mapping.RowHashes had them when they were
	// written. Want are those that the rewrite would write, in the same form.
	Values, Want []invoice.Value
}

// LeftAlone is the verdict on a line that a rewrite does not write, as commit.Sink says; empty for one that it writes.
func (p Present) LeftAlone(it commit.Item, line int64) invoice.Outcome {
	if it.Overwrites(line) {
		return ""
	}
	if p.Recipe == nil || p.DetailHash == "" {
		return unlessTold(it)
	}
	if detail, tracking := p.Recipe.RowHashes(p.Values); detail != p.DetailHash ||
		(p.Tracked && tracking != p.TrackingHash) {
		return invoice.OutcomeEdited
	}
	if p.Recipe.Replaces(p.Values, p.Want) {
		return unlessTold(it)
	}
	return ""
}

func unlessTold(it commit.Item) invoice.Outcome {
	if it.NotComparable {
		return ""
	}
	return invoice.OutcomeNotComparable
}

// Decimal gives a number its column's scale. It keeps digits beyond the scale, because they differ from any
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
