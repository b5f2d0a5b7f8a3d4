// Package writer is the main job: it takes changed documents, writes them to SQL through Sink and records what became
// of each in the document itself. It knows no SDK; its ports are in ports.go and their comments are the contract that
// the adapters are tested against (internal/porttest).
package writer

import (
	"context"
	"encoding/json"

	"sqlwriter/internal/invoice"
)

// Documents is the container that the results wait in.
type Documents interface {
	// Read gives one document by id. Errors by kind: condition Gone when it is not there; infrastructure, throttled.
	Read(ctx context.Context, id string) (json.RawMessage, error)
	// ReadMany gives the documents that exist among ids, in no particular order; absent ones are left out silently.
	// Errors by kind: infrastructure, throttled.
	ReadMany(ctx context.Context, ids []string) ([]json.RawMessage, error)
	// Record sets sql_writer to state, all of it in one patch, if the document still has etag; it answers the new
	// etag. Errors by kind: condition Changed when the etag is another (nothing was done), Gone, TooLarge;
	// infrastructure (the patch may or may not have been applied), throttled, contention, document for anything else.
	Record(ctx context.Context, id, etag string, state invoice.State) (string, error)
}

// Sink is the SQL database. One call is one request and one transaction.
type Sink interface {
	// Apply writes the items, all or nothing, and answers one outcome per item in their order. A line that several
	// items name gets the newest; which one that is, is decided in the database. Applying the same items again
	// answers unchanged. With an error nothing is known to be written (after a lost acknowledgement everything may be).
	// Errors by kind: infrastructure, throttled, quota; contention (nothing was written, try the whole request again);
	// document (the database refused a value; it does not say whose).
	Apply(ctx context.Context, items []Item, mode Mode) ([]Outcome, error)
}

// Mode says what Apply does with what it finds.
type Mode string

// The modes.
const (
	// Write is the ordinary way: unchanged content is left alone.
	Write Mode = "write"
	// Rewrite writes unchanged content again (for repairs). It never lets an older result win.
	Rewrite Mode = "rewrite"
	// Preview writes nothing: the outcomes are those a Write would have, with the values before and after.
	Preview Mode = "preview"
)

// Verdict is what became of a line or of a document.
type Verdict string

// The verdicts.
const (
	// Applied: written by this call. Items of one call with the same content are all applied.
	Applied Verdict = "applied"
	// Unchanged: this very content is there already, from an earlier call.
	Unchanged Verdict = "unchanged"
	// Superseded: something provably newer is there.
	Superseded Verdict = "superseded"
	// Missing: the user's detail row does not exist. A document with a missing row is left out whole; a failure mark
	// loses only that row, and is missing itself when all of its rows are.
	Missing Verdict = "missing"
)

// Item is one document as the sink writes it.
type Item struct {
	DocumentID string
	Version    invoice.Version
	// SourceTS is the _ts of the snapshot, whole seconds: it orders the contents of one document.
	SourceTS int64
	// Hash and HashVersion name the content. A failure mark carries the hash of the content that failed, so that rows
	// which hold that very content after all are skipped; the ledger then keeps no hash for the marked rows.
	Hash        string
	HashVersion int
	// FailureMark makes this a mark: IVCE_LNE_STAT = AI-ERROR in IVCE_DTL and nothing else.
	FailureMark bool
	// Main is the main line; Duplicates get the same values with the main line as their parent.
	Main       int64
	Duplicates []int64
	// Values are aligned with invoice.Columns().
	Values []invoice.Value
}

// Rows counts the detail rows of an item.
func (i Item) Rows() int { return 1 + len(i.Duplicates) }

// ItemOf makes the item of a document that has no Problem.
func ItemOf(d invoice.Document) Item {
	return Item{
		DocumentID: d.ID, Version: d.Version, SourceTS: d.TS, Hash: d.Hash, HashVersion: invoice.HashVersion,
		Main: d.Main, Duplicates: d.Duplicates, Values: d.Values,
	}
}

// RowOutcome is the verdict on one line.
type RowOutcome struct {
	DetailID int64
	// Verdict is empty for a line that exists but whose document was left out because another line is missing.
	Verdict Verdict
	// By is the id of the document that the ledger names for the line when the verdict is Superseded.
	By string
	// Before and After are the line's values, aligned with invoice.Columns(); filled by Preview only. Before is nil
	// where no row exists.
	Before, After []invoice.Value
}

// Outcome is the verdict on one document, drawn from its lines: missing if any line is missing (not for a mark), else
// applied if any line was written, else unchanged if any line is, else superseded.
type Outcome struct {
	DocumentID string
	Verdict    Verdict
	// SupersededBy is the id of the newest document that holds a line of this one; empty when none does.
	SupersededBy string
	// Rows has the main line first, then the duplicates in their order.
	Rows []RowOutcome
}

// Missing lists the lines of an outcome that do not exist.
func (o Outcome) Missing() []int64 {
	var ids []int64
	for _, r := range o.Rows {
		if r.Verdict == Missing {
			ids = append(ids, r.DetailID)
		}
	}
	return ids
}
