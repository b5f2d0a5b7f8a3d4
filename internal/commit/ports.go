// Package commit writes changed documents to SQL through Sink, and records each outcome in the document itself. It
// imports no SDK. The comments of its ports (ports.go) are the contract that test/conformance checks for every adapter.
package commit

import (
	"context"
	"encoding/json"
	"strings"
	"time"

	"sqlwriter/internal/breaker"
	"sqlwriter/internal/invoice"
)

// Documents is the container of the documents.
type Documents interface {
	// Read gives one document by id. Errors by kind: condition Gone when it does not exist; document, code CodeIDTwice,
	// when several have the id; infrastructure, throttled.
	Read(ctx context.Context, id string) (json.RawMessage, error)
	// ReadMany gives the documents that exist among ids, in no order. Missing ones are not an error. All documents with
	// an id come when several have it. Errors by kind: infrastructure, throttled.
	ReadMany(ctx context.Context, ids []string) ([]json.RawMessage, error)
	// Record sets sql_writer to state in one patch, if the document still has the snapshot's etag, and gives the new
	// etag. Errors by kind: condition Changed for another etag (nothing was done), Gone, TooLarge; infrastructure (the
	// patch may have been applied), throttled, contention; document for any other refusal.
	Record(ctx context.Context, doc invoice.Snapshot, state invoice.State) (string, error)
}

// Sink is the SQL database. Each call is one request and one transaction; a Rewrite may read by another request before.
type Sink interface {
	// Apply writes the items, all or none, and gives one outcome per item in their order. The database decides which
	// item is the newest for a line that several items name. The same items again give unchanged. An item that can
	// never be written may be refused alone (Outcome.Refused); the others are then applied as without it.
	//
	// After an error no write is certain; after a lost acknowledgement all items may be written. Errors by kind:
	// infrastructure (with condition fault.Waits when it is another writer's turn: nothing was written), throttled,
	// quota; contention (nothing was written, retry the whole request); document (the database refused a value, without
	// naming the document).
	//
	// A Rewrite compares each line that has a ledger row and would be written with that row. It leaves an edited line,
	// and one that is not comparable, untouched in all tables, and writes the item's other lines. A person who edits a
	// line at the same time makes it contention. Failure marks are not compared.
	//
	// A Rewrite writes a line of Item.Releases over newer content while the ledger row is the one that was found, and
	// compares it as the others. Of any other row the line is superseded.
	//
	// The ledger's row of a written line has known.SysName, and the hashes of the line's two rows (Mapping.RowHashes).
	//
	// Without items a Preview still sends a request, with everything that a preview needs, and gives no outcomes. A
	// Write or Rewrite without items sends none.
	//
	// Write and Rewrite compare the database with known in the same request, by the row of known.SysName in the table
	// heartbeat. Errors by kind: infrastructure, code breaker.CodeWentBack when the row's number is lower than
	// known.Number; code breaker.CodeOtherDatabase when its id differs or the row is missing. A known without a number
	// is not compared.
	Apply(ctx context.Context, items []Item, mode Mode, known breaker.Heartbeat) ([]DocumentOutcome, error)
	// Heartbeat raises the number of an environment's row in the table heartbeat, commits, and gives the committed row.
	// Success proves that the database takes writes. It locks the row and compares it first, as Apply does. It changes
	// no table of the user.
	//
	// The new number is one higher, or the milliseconds since 1970 by the database's clock when those are more. A
	// database whose number rises one by one without a comparison therefore never reaches the known number. For a known
	// without a number Heartbeat makes a missing row, with a new id, and does not change an existing one.
	//
	// Errors by kind: as Apply's comparison; infrastructure (code "read_only" for a read-only database), throttled,
	// quota. It is contention when another transaction has the row, or makes it at the same time.
	Heartbeat(ctx context.Context, known breaker.Heartbeat) (breaker.Heartbeat, error)
	// TakeOver is Heartbeat without the comparison, by an operator's decision. The row, made when it is missing, gets a
	// new id and a number above both. From then on the database that was given up counts as another one. TakeOver gives
	// the committed row. Errors as Heartbeat.
	TakeOver(ctx context.Context, known breaker.Heartbeat) (breaker.Heartbeat, error)
}

// CodeIDTwice is the code of an id that several documents have. Cosmos DB takes the same id under each partition key.
const CodeIDTwice = "id_twice"

// Evidence stores a poison message's files before its lines are marked.
type Evidence interface {
	// Keep stores a file under name unless the name exists; both are success, so a second try changes nothing. A name
	// has at most MaxEvidenceName characters: parts of letters, digits and -_.~%, divided by /. No part is empty or
	// ends with a dot, because Azure may drop the dot (naming-blobs) and two names would share a file. Errors by kind:
	// infrastructure (it may have been stored), throttled, quota; internal for an invalid name.
	Keep(ctx context.Context, name string, content []byte) error
}

// MaxEvidenceName is the longest name of a file: Azure's limit for blobs, less the environment's name.
const MaxEvidenceName = 960

// Mode is the effect of Apply.
type Mode string

// The modes.
const (
	// Write is the default: lines with the same content stay untouched.
	Write Mode = "write"
	// Rewrite writes such lines again, for repairs, and leaves alone what a person edited (invoice.OutcomeEdited,
	// OutcomeNotComparable). It keeps the status of a line that has the content already, because a steward may have set
	// it. An older result replaces a newer one only where Item.Releases says so.
	Rewrite Mode = "rewrite"
	// Preview writes nothing. Its outcomes are those of a Write, with the values before and after.
	Preview Mode = "preview"
)

// Item is one document for the sink.
type Item struct {
	DocumentID string
	Version    invoice.Version
	// SourceTS is the snapshot's _ts in whole seconds. It orders the contents of one document.
	SourceTS int64
	// Hash and HashVersion identify the content. A failure mark has the hash of the content that failed, so that lines
	// with that content are skipped; the ledger stores no hash for marked lines.
	Hash        string
	HashVersion int
	// FailureMark makes the item a mark: IVCE_LNE_STAT = AI-ERROR in IVCE_DTL and nothing else.
	FailureMark bool
	// Main is the main line. Duplicates get the same values, with the main line as their parent.
	Main       int64
	Duplicates []int64
	// Values are aligned with Mapping.Columns.
	Values []invoice.Value
	// Overwrite has the lines that an operator named: a Rewrite writes them whoever edited them, with the item's
	// status.
	Overwrite []int64
	// NotComparable lets a Rewrite write lines that are not comparable.
	NotComparable bool
	// Releases let a Rewrite write lines of this document over the content of a newer one.
	Releases []Release
	// LeaveSince is a time in epoch seconds; 0 means none. A Write leaves alone a line of the same document with
	// another HashVersion if the ledger's row was written, or has a snapshot, of this time or later
	// (invoice.OutcomeNotComparable).
	LeaveSince int64
}

// Release lets a Rewrite write one line of a document although the ledger names a newer document, which does not name
// the line any more. It holds for the ledger row that was found, and for no later one: the writing statement compares
// key, write id and source_ts. The last one tells that the newer document was written with the same content again.
type Release struct {
	Line int64 `json:"line"`
	// Document is the id of the document that is written.
	Document string `json:"document"`
	// Key is the invoice.Version.Key of the document that the ledger row names. WriteID and SourceTS are the row's.
	Key      string `json:"key"`
	WriteID  string `json:"write_id"`
	SourceTS int64  `json:"source_ts"`
}

// Rows is the number of detail rows of an item.
func (i Item) Rows() int { return 1 + len(i.Duplicates) }

// ItemOf makes the item of a document, which must have no Problem.
func ItemOf(d invoice.Document) Item {
	return Item{
		DocumentID: d.ID, Version: d.Version, SourceTS: d.TS, Hash: d.Hash, HashVersion: d.Mapping.Version(),
		Main: d.Main, Duplicates: d.Duplicates, Values: d.Values,
	}
}

// TakenOver makes the item of a document that a run takes over. The record of a commit makes a later snapshot, so a
// line that another build wrote looks older than it is: a person may have corrected it since. It is left alone unless
// the commit is later than the line: then the database lacks it. The two times are of different clocks. Only a commit
// that wrote something tells when: one that found its content there may be much later than the line.
func TakenOver(d invoice.Document) Item {
	it := ItemOf(d)
	if d.State.Status == invoice.Committed {
		it.LeaveSince = 1
	}
	if us, known := invoice.TimeOfID(d.State.CommittedAt); known && d.State.Outcome == invoice.OutcomeApplied {
		at := min(time.UnixMicro(us).Unix(), d.TS) // no commit is later than the document
		it.LeaveSince = max(1, at-int64(invoice.ClockSkew/time.Second))
	}
	return it
}

// RowOutcome is the result for one line.
type RowOutcome struct {
	DetailID int64
	// Verdict is empty for a line that exists but whose document was left out because another line is missing.
	Verdict invoice.Outcome
	// By is the id of the document whose content the line has, for Superseded.
	By string
	// Before and After are the line's values, aligned with Mapping.Columns, for Preview only. Want are those of this
	// item's content, whatever the verdict. All are as the user's columns keep them (a char column has no blanks at the
	// end here). All are nil where no row exists.
	Before, After, Want []invoice.Value
}

// DocumentOutcome is the result for one document. Its Verdict is the first that applies: missing (any line is; not for
// a mark), edited (any line is), not comparable (any line is), applied (any line was written), unchanged (any line is),
// superseded.
type DocumentOutcome struct {
	DocumentID string
	Verdict    invoice.Outcome
	// Refused is the document's own error (kind document) when the sink refused it before sending. Verdict and Rows are
	// then empty.
	Refused error
	// SupersededBy is the id of the newest document whose content a line has instead; empty if no line is superseded.
	SupersededBy string
	// Rows has the main line first, then the duplicates in their order.
	Rows []RowOutcome
}

// Missing lists the lines that do not exist.
func (o DocumentOutcome) Missing() []int64 { return o.lines(invoice.OutcomeMissing) }

func (o DocumentOutcome) lines(v invoice.Outcome) []int64 {
	var ids []int64
	for _, r := range o.Rows {
		if r.Verdict == v {
			ids = append(ids, r.DetailID)
		}
	}
	return ids
}

// whyUnmarked names the lines that a mark left as they are, for people.
func (o DocumentOutcome) whyUnmarked() string {
	var parts []string
	if missing := o.Missing(); len(missing) > 0 {
		parts = append(parts, "where there is no row in IVCE_DTL: lines "+idList(missing))
	}
	if other := o.lines(invoice.OutcomeNotComparable); len(other) > 0 {
		parts = append(parts, "where another mapping wrote the document, perhaps with this content: lines "+idList(other))
	}
	if len(parts) == 0 {
		return ""
	}
	return "AI-ERROR could not be set " + strings.Join(parts, "; ")
}

// whyLeftAlone names the lines that a rewrite left alone, for people.
func (o DocumentOutcome) whyLeftAlone() string {
	var parts []string
	if edited := o.lines(invoice.OutcomeEdited); len(edited) > 0 {
		parts = append(parts, "edited since they were written: lines "+idList(edited))
	}
	if unknown := o.lines(invoice.OutcomeNotComparable); len(unknown) > 0 {
		parts = append(parts, "not comparable with what was written: lines "+idList(unknown))
	}
	return strings.Join(parts, "; ")
}
