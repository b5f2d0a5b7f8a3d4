package reconcile

import (
	"context"
	"time"

	"sqlwriter/internal/invoice"
	"sqlwriter/internal/run"
)

// Rows reads the ledger and the user's two tables. It changes nothing. Errors by kind: infrastructure, throttled,
// quota, contention.
type Rows interface {
	// Scan compares the next lines of the ledger with both tables, in the order of their ids after the id after. It
	// takes no lasting lock, so a line that is written meanwhile may be in Differ. It reads at most limit ledger rows,
	// whatever their environment.
	Scan(ctx context.Context, after int64, limit int) (Scanned, error)
	// Lines reads lines by their ids, at most MaxLines, each once and in no order: also those without any row, and
	// those of other environments. No write of ours comes between a line's ledger row and its other rows; a line
	// without a ledger row may get one meanwhile.
	Lines(ctx context.Context, ids []int64) ([]Line, error)
}

// MaxLines is the most lines of one Rows.Lines, and MaxScan of one Rows.Scan.
const (
	MaxLines = 1000
	MaxScan  = 1000
)

// Scanned is the result of a scan.
type Scanned struct {
	// Last is the id of the last ledger row that was read, whatever its environment; the next scan begins after it.
	// Without a row it is the id after. More is false if fewer rows than the limit were left.
	Last int64
	More bool
	// Same, Reviewed and Archived count lines of the environment that are RowsSame, RowsReviewed, RowsArchived. A line
	// with a failure mark counts as the same: nothing but its status was written, and stewards change that.
	Same, Reviewed, Archived int
	// NotComparable counts those that are RowsUnknown by the HashVersion of their ledger row; those without hashes of
	// their rows, such as adopted ones, are 0's.
	NotComparable map[int]int
	// Differ are the ids of the others.
	Differ []int64
	// Documents are all lines of the environment, by the id of the document that the ledger row names.
	Documents map[string][]int64
}

// Line is a line in SQL.
type Line struct {
	ID     int64
	Ledger Ledger
	Rows   RowState
	// RowHash identifies both rows, status included; empty when both are missing.
	RowHash string
	// Values are those of both rows, aligned with Mapping.Columns; nil without a detail row. Tracking values are NULL
	// without a tracking row.
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
	// Recipe makes the hashes of HashVersion; nil if the mapping in use cannot.
	Recipe *invoice.Recipe
	// WriteID is another one after each write.
	WriteID string
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
	// RowsArchived: there is no detail row, and the line was written longer ago than the user keeps rows.
	RowsArchived RowState = "archived"
	// RowsUnknown: the detail row is there, and the ledger does not say what was written: no ledger row, a mark, an
	// adopted line, a HashVersion that the mapping in use cannot compare.
	RowsUnknown RowState = "unknown"
)

// Findings keeps the comparisons, findings and suspects of the environment. Errors by kind: infrastructure, throttled,
// quota, contention.
type Findings interface {
	// Begin adds a comparison; false if there is one with its ID, and nothing is changed.
	Begin(ctx context.Context, c Comparison) (began bool, err error)
	// Next returns the comparison that was begun first of those that have not ended; false if there is none.
	Next(ctx context.Context) (c Comparison, there bool, err error)
	// Last returns the comparison that began last of those that ended without an Error and named no documents; false if
	// there is none.
	Last(ctx context.Context) (c Comparison, there bool, err error)
	// Save stores a step of a comparison: its position, counts and end, what looks saw, and deletes what is no longer
	// so; all in one transaction. Step becomes one higher. If it is not c.Step, or the comparison has ended, it changes
	// nothing: contention, condition Changed. So of two ticks that do the same step one saves it.
	//
	// A new finding gets FirstSeen now, a known one keeps it, and keeps to be Sure. All of put get LastSeen, Mark,
	// Detail and Mends. While a class has MaxFindings, none of the class is added, and the counts that are stored have
	// these too (Comparison.Unkept).
	Save(ctx context.Context, c Comparison, put []Seen, drop []Key) error
	// List returns findings after a key (nil begins), at most limit. They are in the order of class, line, and
	// run.DocumentKey of the document. Without Query.Classes it returns those of FindingClasses.
	List(ctx context.Context, q Query, after *Key, limit int) ([]Finding, error)
	// Counts counts the findings of each class that has some, in the order of their classes; no suspects.
	Counts(ctx context.Context) ([]Count, error)
	// AdoptedAt returns when the ledger was adopted, or declared empty; the zero time when it was not.
	AdoptedAt(ctx context.Context) (time.Time, error)
	// Marks returns the entries of the audit log by which a person said that the lines of one of the documents were
	// repaired by hand (run.CodeMarkCommitted): who, why and when.
	Marks(ctx context.Context, documents []string) (map[run.Mark]run.Audit, error)
}
