package reconcile

import (
	"context"
	"encoding/json"
	"time"

	"sqlwriter/internal/invoice"
	"sqlwriter/internal/run"
)

// Rows reads the ledger and the user's two tables. It changes nothing. Errors by kind: infrastructure, throttled, quota, contention.
type Rows interface {
	// Scan compares the next lines of the ledger with both tables, in the order of their ids after the id after. It takes no lasting
	// lock, so a line that is written meanwhile may be in Differ. It reads at most limit ledger rows, whatever their environment.
	Scan(ctx context.Context, after int64, limit int) (Scanned, error)
	// Lines reads lines by their ids, at most MaxLines, each once and in no order: also those without any row, and those of other
	// environments. No write of ours comes between a line's ledger row and its other rows; a line without a ledger row may get one
	// meanwhile.
	Lines(ctx context.Context, ids []int64) ([]Line, error)
	// Names returns the documents of the environment's ledger rows after an id, in the order of their ids. It reads at most limit ledger
	// rows, whatever their environment.
	Names(ctx context.Context, after int64, limit int) (NamesPage, error)
}

// MaxLines is the most lines of one Rows.Lines, and MaxScan of one Rows.Scan and one Rows.Names.
const (
	MaxLines = 1000
	MaxScan  = 1000
)

// Scanned is the result of a scan.
type Scanned struct {
	// Last is the id of the last ledger row that was read, whatever its environment; the next scan begins after it. Without a row it is
	// the id after. More is false if fewer rows than the limit were left.
	Last int64
	More bool
	// Same, Reviewed and NotComparable count lines of the environment whose rows are there and RowsSame, RowsReviewed, RowsUnknown. A line
	// with a failure mark counts as the same: nothing but its status was written, and stewards change that.
	Same, Reviewed, NotComparable int
	// Differ are the ids of the others.
	Differ []int64
}

// NamesPage is the result of Rows.Names. Last and More are as in Scanned.
type NamesPage struct {
	Lines []LineDocument
	Last  int64
	More  bool
}

// LineDocument is a line and the document that the ledger names for it.
type LineDocument struct {
	ID         int64
	DocumentID string
}

// Line is a line in SQL.
type Line struct {
	ID     int64
	Ledger Ledger
	Rows   RowState
	// RowHash identifies both rows, status included; empty when both are missing.
	RowHash string
	// Values are those of both rows, aligned with invoice.Columns(); nil without a detail row. Tracking values are NULL without a
	// tracking row.
	Values []invoice.Value
}

// Ledger is a row of the ledger. The zero value means none.
type Ledger struct {
	// Outcome is applied, failed or adopted; empty without a row.
	Outcome    string
	Version    invoice.Version
	DocumentID string
	SysName    string
	SourceTS   int64
	// Hash and HashVersion identify the content; zero for a failure mark.
	Hash        string
	HashVersion int
	// WriteID is another one after each write.
	WriteID string
	// WrittenAt is when the row was last written (applied_at), by the database's clock.
	WrittenAt time.Time
}

// RowState compares a line's rows with its ledger row.
type RowState string

// The states of rows.
const (
	// RowsSame: both are as written.
	RowsSame RowState = "same"
	// RowsReviewed: only the status is one that no document gives.
	RowsReviewed RowState = "reviewed"
	// RowsEdited: a value other than the status differs.
	RowsEdited RowState = "edited"
	// RowsNoTracking: the tracking row is missing, and the detail row is as written.
	RowsNoTracking RowState = "no_tracking"
	// RowsMissing: there is no detail row.
	RowsMissing RowState = "missing"
	// RowsUnknown: the detail row is there, and the ledger does not say what was written: no ledger row, a mark, an adopted line, another
	// HashVersion.
	RowsUnknown RowState = "unknown"
)

// Findings keeps the findings of the environment. Errors by kind: infrastructure, throttled, quota, contention.
type Findings interface {
	// Save stores what a run saw and what is no longer true, in one transaction. It may be repeated with the same arguments.
	//
	// A finding that is not open is opened: new, gone before, or accepted with another RowHash. Opened ones get FirstSeen now and no
	// QueuedBy. An open one keeps both. All seen ones get LastSeen, Run, RowHash, Detail and Mend. While a class has MaxOpen open ones,
	// none of the class is opened. Keys in gone become gone, unless the same run saw them.
	//
	// It returns how many it opened, and how many of the keys in gone this run made gone. A repeated call opens none.
	Save(ctx context.Context, runID string, seen []Seen, gone []Key) (opened, closed int, err error)
	// List returns findings after a key (nil begins), at most limit. They are in the order of class, line, and run.DocumentKey of the
	// document. Without Query.Classes it returns those of FindingClasses.
	List(ctx context.Context, q Query, after *Key, limit int) ([]Finding, error)
	// Counts counts the open and accepted findings of each class that has some, in the order of their classes.
	Counts(ctx context.Context) ([]Count, error)
	// MarkQueued sets QueuedBy of open findings that have none.
	MarkQueued(ctx context.Context, by string, keys []Key) error
	// LastCompleted returns the last run of a kind that ended completed, and when it began; false if there is none. A run that named
	// documents does not count, because it compared nothing else.
	LastCompleted(ctx context.Context, kind run.Kind) (runID string, began time.Time, ok bool, err error)
	// Waits reports whether a run is to wait: an older run of its kind is running, or the run that it is to follow. One that was asked
	// to end is running until it has ended.
	Waits(ctx context.Context, r run.Run, follows string) (bool, error)
	// AdoptedAt returns when the ledger was adopted, or declared empty; the zero time when it was not.
	AdoptedAt(ctx context.Context) (time.Time, error)
}

// Accepter accepts findings for an operator. The adapters of Findings implement it too.
type Accepter interface {
	// Accept accepts open findings with the RowHash that they have now: a has the words of who and why, and becomes an entry of the audit log
	// in the same transaction. Accepted ones are accepted again. If one of the keys is gone or unknown, it changes nothing: contention, condition
	// Changed. Without keys it does nothing. Errors by kind: infrastructure, throttled, quota, contention; internal for an invalid entry.
	Accept(ctx context.Context, keys []Key, a run.Audit) error
}

// Documents reads the container. Charge is request units. Errors by kind: infrastructure, throttled.
type Documents interface {
	// Changed returns a page of whole documents of the environment with a _ts in [from, to), at most size, and the continuation of the
	// next page. "" begins, and ends. Documents that change meanwhile may be missed or come twice. Errors also: document, code
	// "continuation", for an invalid or expired continuation: begin again.
	Changed(ctx context.Context, from, to int64, size int, continuation string) (docs []json.RawMessage, next string, charge float64, err error)
	// ReadMany returns those of at most 100 documents that exist, whole, of any environment, in no order.
	ReadMany(ctx context.Context, ids []string) (docs []json.RawMessage, charge float64, err error)
	// Heads is ReadMany of up to 1,000 documents without their content: id, _ts, _etag, request_details.sys_name, sql_writer without attempts.
	Heads(ctx context.Context, ids []string) (docs []invoice.Projection, charge float64, err error)
	// OfLines returns the ids of the environment's documents that name one of at most 100 lines, as main line or duplicate.
	OfLines(ctx context.Context, lines []int64) (ids []string, charge float64, err error)
}

// Evidence reads evidence and keeps reports. Errors by kind: infrastructure, throttled, quota.
type Evidence interface {
	// Episodes returns the next episodes of failed documents, in the order of their names, and the position after them; "" begins, and
	// ends. Those that have no metadata.json are not complete and not returned.
	Episodes(ctx context.Context, at string) (page []Episode, next string, err error)
	// Newest returns the newest complete episode of a document; false without one.
	Newest(ctx context.Context, d invoice.Document) (Episode, bool, error)
	// KeepReport stores a file under reports/{sys_name}/{name}, over an older one.
	KeepReport(ctx context.Context, name string, content []byte, contentType string) error
}

// Episode is the evidence of one failure of a document.
type Episode struct {
	// DocumentID is from metadata.json where the name does not hold it whole.
	DocumentID string
	// Folder is the folder within the environment, as commit.EvidenceFolder.
	Folder string
	// At is when its metadata.json was stored.
	At time.Time
}

// Leases reads the lease container. Errors by kind: infrastructure, throttled.
type Leases interface {
	// Locks returns the host's locks under our lease prefix, and when each was written.
	Locks(ctx context.Context) ([]Lock, error)
}

// Lock is a document by which a host that starts keeps others out.
type Lock struct {
	ID string
	At time.Time
}

// Mender starts the runs that mend.
type Mender interface {
	// Mend starts a run that names documents, for the timer. The id is the caller's; a run that exists already is success.
	Mend(ctx context.Context, id string, mend Mend, documents []string, why string) error
}
