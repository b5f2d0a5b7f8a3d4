package shared

import (
	"fmt"
	"strings"

	"sqlwriter/internal/commit"
	"sqlwriter/internal/invoice"
	"sqlwriter/internal/reconcile"
)

// Present is a line that has a ledger row and that a rewrite would write, as it is now.
type Present struct {
	// Recipe is that of the ledger row's version; nil where nothing tells what was written, as for an adopted or marked
	// line. The hashes are the ledger's; empty where it has NULL.
	Recipe *invoice.Recipe
	// Hash is that of the content; empty for one of an older document.
	Hash                     string
	DetailHash, TrackingHash string
	// Tracked says that the line has a tracking row.
	Tracked bool
	// Values are those of both rows, aligned with Mapping.Columns and as Mapping.RowHashes had them when they were
	// written. Want are those that the rewrite would write, in the same form.
	Values, Want []invoice.Value
}

// LeftAlone is reconcile.Line.LeftAlone.
func (p Present) LeftAlone(it commit.Item, line int64) invoice.Outcome {
	l := storedLine{
		Ledger: reconcile.Ledger{Recipe: p.Recipe}, DetailHash: p.DetailHash, TrackingHash: p.TrackingHash,
		Detail: true, Tracking: p.Tracked, Values: p.Values,
	}
	outcome, _ := reconcile.Line{ID: line, Ledger: l.Ledger, Rows: l.state(), Values: l.Values}.LeftAlone(it, p.Want)
	return outcome
}

// Has reports whether the line was written with the item's content, by the recipe of its version.
func (p Present) Has(it commit.Item) bool {
	return reconcile.Ledger{Recipe: p.Recipe, Version: it.Version, Hash: p.Hash}.Has(it)
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
