// Package commit is the main job: it takes changed documents, writes them to SQL through Sink and records what became
// of each in the document itself. It knows no SDK; its ports are in ports.go and their comments are the contract that
// the adapters are tested against (test/conformance).
package commit

import (
	"context"
	"encoding/json"

	"sqlwriter/internal/breaker"
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
	// answers unchanged. An item that cannot be written whatever the others are may be refused by itself (Outcome.Refused);
	// the others are then applied as if it were not there.
	// With an error nothing is known to be written (after a lost acknowledgement everything may be).
	// Errors by kind: infrastructure, throttled, quota; contention (nothing was written, try the whole request again);
	// document (the database refused a value; it does not say whose).
	// Without items a preview is still one request: it needs what every preview needs and answers no outcomes. A write
	// without items is none.
	// Write and Rewrite refuse, in the same request, a database that is not the one that is known: infrastructure, code
	// breaker.CodeWentBack when the number of the row of known.SysName in the table heartbeat is lower than known.Number,
	// breaker.CodeOtherDatabase when its id is another or there is no row. A known without a number is not compared.
	Apply(ctx context.Context, items []Item, mode Mode, known breaker.Heartbeat) ([]Outcome, error)
	// Heartbeat raises the number of an environment's row in the table heartbeat and commits, in one request, and answers the
	// row as it was committed: the database takes writes and commits them. It compares first, as Apply does, with the row locked,
	// and refuses likewise. With a known without a number it makes the row, with an id of its own, where there is none, and leaves the
	// number of another as it is: what is not compared is not raised. The number is one higher, or
	// the milliseconds since 1970 by the database's clock where those are more: what raises it one by one, without comparing,
	// never reaches what is known. It touches nothing of the user's.
	// Errors by kind: infrastructure (code "read_only" for a database that only answers reads), throttled, quota; contention
	// when somebody else holds the row, or makes it at the same time.
	Heartbeat(ctx context.Context, known breaker.Heartbeat) (breaker.Heartbeat, error)
	// TakeOver is Heartbeat without refusals, on an operator's word: the row, made when it is not there, then has a new id and a
	// number above both, so that a database that was given up is another one from then on. It answers the row as it was committed.
	// Errors as Heartbeat.
	TakeOver(ctx context.Context, known breaker.Heartbeat) (breaker.Heartbeat, error)
}

// Evidence keeps what a poison pill was, before it is marked anywhere.
type Evidence interface {
	// Keep stores a file under a name unless there is one already; either is success, so a second try changes nothing.
	// The name has parts divided by /, and is at most MaxEvidenceName characters of letters, digits and -_.~%/ long. No part
	// is empty or ends with a dot: Azure may drop the dot, and two names would be one file (naming-blobs).
	// Errors by kind: infrastructure (it may have been stored), throttled, quota; internal for a name that is none.
	Keep(ctx context.Context, name string, content []byte) error
}

// MaxEvidenceName is how long the name of a file may be: Azure's limit for blobs, less the name of the environment.
const MaxEvidenceName = 960

// Backlog finds documents that no trigger brings any more. A status is matched in lower case, in upper case and
// capitalised; other spellings are not found, and neither is a document without a status: it was never offered.
type Backlog interface {
	// PendingDocs gives the documents of an environment whose status is one of statuses and whose _ts lies in [from, to),
	// page by page and in no order, until there are none or page answers more = false or an error, which is handed on as it
	// is. Errors by kind: infrastructure, throttled.
	PendingDocs(ctx context.Context, sysName string, statuses []invoice.Status, from, to int64, page func([]PendingDoc) (more bool, err error)) error
	// Page gives some documents of a window, and the continuation of the next page: "" begins, and is answered when there are
	// no more. A page has at most 100 documents, in no order; it may be empty and have a next one. What changes meanwhile may
	// be missed or come twice. A continuation is good for another process and for a later query of the same window and
	// environment, but it keeps the times that its search began with: what comes due later is found by the next search.
	// Errors by kind: document, code "continuation", when the continuation is none (any more): begin again; infrastructure,
	// throttled.
	Page(ctx context.Context, q WindowQuery, continuation string) (found []PendingDoc, next string, err error)
}

// Window is one part of what the recovery timer looks for.
type Window string

// The windows. A retry is due when its retry_after is missing, no number, not after Now, or more than a day after it.
// Put off is what last failed with kind contention, infrastructure or throttled: it was tried and not judged.
const (
	// PutOff: retry_scheduled, due, and put off.
	PutOff Window = "put_off"
	// Due: retry_scheduled, due, neither put off nor postponed.
	Due Window = "due"
	// Postponed: retry_scheduled and postponed, not put off; due, or last changed (_ts) before AppliedBefore.
	Postponed Window = "postponed"
	// Orphans: pending and last changed before LeftBefore, or processing and last changed before OldWriterBefore.
	Orphans Window = "orphans"
)

// Windows are all windows, in the order in which a tick looks at them: what one leaves of its share the next may use, and
// most waits in the last two.
func Windows() []Window { return []Window{PutOff, Orphans, Due, Postponed} }

// WindowQuery asks for the documents of one window. The times are epoch seconds. Now must be set; by another that is 0
// nothing qualifies.
type WindowQuery struct {
	SysName                                         string
	Window                                          Window
	Now, AppliedBefore, LeftBefore, OldWriterBefore int64
}

// PendingDoc is what Backlog tells of a document: no content.
type PendingDoc struct {
	ID string
	// TS is the document's _ts in whole seconds.
	TS int64
	// Status is lower case.
	Status invoice.Status
	// RetryAfter is sql_writer.retry_after in epoch seconds, rounded up; 0 when it is missing or no number. See invoice.Due.
	RetryAfter int64
	// Postponed is the member of that name.
	Postponed bool
	// Kind, Code and FailedAt are the members last_error_kind, last_error_code and failed_at; empty when absent.
	Kind, Code, FailedAt string
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
	// Refused is the document's own error (kind document) when the sink refused it before sending anything of it; Verdict
	// and Rows are then empty.
	Refused error
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
