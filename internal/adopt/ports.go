package adopt

import (
	"context"
	"time"

	"sqlwriter/internal/invoice"
)

// Ledger has the ledger's rows and the progress of the adoption.
type Ledger interface {
	// State returns the progress; the zero State if no adoption has begun. Errors by kind: infrastructure, throttled.
	State(ctx context.Context) (State, error)
	// Begin replaces the state by a new run at watermark 0 and returns it. If the state is no longer was, it changes
	// nothing: contention, condition Changed. Errors by kind: infrastructure, throttled, quota, contention.
	Begin(ctx context.Context, was State, by string) (State, error)
	// Page writes rows as the guard allows, and with an Advance moves the watermark: all or nothing. If the run is no
	// longer at page.From, it changes nothing: contention, condition Changed. The same page again changes nothing. The
	// user's tables are not used. Errors by kind: infrastructure, throttled, quota, contention.
	//
	// The guard takes a line that the ledger does not have, and a line with an older version. It also takes a line with
	// the same document and a _ts that is not later, in three cases:
	//   - a failure mark meets a row that is not one;
	//   - content meets a failure mark;
	//   - content meets content with another hash, if the hashes are comparable or the ledger's is Unproven.
	Page(ctx context.Context, p Page) error
	// Finish ends the run and adds the ledger's counts of it. If the run is not at watermark: contention, condition
	// Changed. Errors by kind: infrastructure, throttled, quota, contention.
	Finish(ctx context.Context, run string, watermark int64) (State, error)
}

// Reader reads the ledger's rows.
type Reader interface {
	// Rows returns the ledger rows of the given lines, in no order; unknown lines have none. Errors by kind:
	// infrastructure, throttled.
	Rows(ctx context.Context, lines []int64) ([]Row, error)
	// RowsOf returns the ledger rows that a document has, in no order. It reads the whole ledger. Errors by kind:
	// infrastructure, throttled.
	RowsOf(ctx context.Context, document string) ([]Row, error)
}

// Phase is the phase of a database's adoption.
type Phase string

// The phases. The zero value means that no adoption has begun.
const (
	// Running: not finished; the ledger is incomplete.
	Running Phase = "running"
	// Done: the ledger has every document that was finished before.
	Done Phase = "done"
	// Empty: an operator declared that no other program has written before.
	Empty Phase = "empty"
)

// State is the progress of an adoption, stored in the database.
type State struct {
	Phase Phase
	// Run is the run's name and the write id of its ledger rows: 32 hex digits; empty before the first.
	Run string
	// Watermark is the _ts in seconds before which the ledger is complete.
	Watermark int64
	// Counts are those of the windows before the watermark.
	Counts Counts
	// By is the operator who began the run or declared the database empty.
	By string
	// Started and Finished are by the database's clock; zero before they happen.
	Started, Finished time.Time
}

// Adopted reports whether the ledger is complete, so that the app may commit.
func (s State) Adopted() bool { return s.Phase == Done || s.Phase == Empty }

// Counts are the numbers of a run.
type Counts struct {
	// Before is Options.Before.
	Before time.Time `json:"before,omitzero"`
	// Documents are those of the environment that were committed or failed, also if they were reset since. Lines are
	// the lines that they name.
	Documents int `json:"documents"`
	Lines     int `json:"lines"`
	// Adopted and Marked are the lines with a ledger row of this run: content, and failure marks. They are known at the
	// end of the run.
	Adopted int `json:"adopted"`
	Marked  int `json:"marked"`
	// Unproven are documents that changed after their commit; see the constant.
	Unproven int `json:"unproven"`
	// Skipped counts documents without ledger rows, by reason.
	Skipped map[Reason]int `json:"skipped,omitempty"`
	// Open are documents that wait, those that were reset included. Processing are those of them with the old writer's
	// status processing.
	Open       int `json:"open"`
	Processing int `json:"processing"`
}

// Kept is how often a line was left alone: the ledger had the document already, or has a newer one.
func (c Counts) Kept() int { return max(0, c.Lines-c.Adopted-c.Marked) }

func (c Counts) plus(o Counts) Counts {
	sum := Counts{
		Before:    c.Before,
		Documents: c.Documents + o.Documents, Lines: c.Lines + o.Lines, Adopted: c.Adopted + o.Adopted,
		Marked:   c.Marked + o.Marked,
		Unproven: c.Unproven + o.Unproven, Open: c.Open + o.Open, Processing: c.Processing + o.Processing,
		Skipped: map[Reason]int{},
	}
	for _, skipped := range []map[Reason]int{c.Skipped, o.Skipped} {
		for reason, n := range skipped {
			sum.Skipped[reason] += n
		}
	}
	return sum
}

// Outcome is the origin of a line's content, as stored in the ledger.
type Outcome string

// The outcomes. Page writes the last two; Sink.Apply writes Applied.
const (
	Applied Outcome = "applied"
	// Adopted: another writer wrote the document's content.
	Adopted Outcome = "adopted"
	// Failed: the line has the document's failure mark.
	Failed Outcome = "failed"
)

// Unproven is the hash version of a document that changed after its commit, or was reset: its line may have other
// content. No content has this version, so a later snapshot of the document is written (docs/requirements.md R16).
const Unproven = 0

// Row is the ledger row of one line.
type Row struct {
	Line       int64
	Version    invoice.Version
	DocumentID string
	// SysName is the document's environment.
	SysName string
	// SourceTS is the document's _ts when it was read.
	SourceTS int64
	// Hash and HashVersion identify the content; empty and 0 for a failure mark.
	Hash        string
	HashVersion int
	Outcome     Outcome
}

// Page is a part of a run's rows.
type Page struct {
	// Run and From are the run and the watermark that the page builds on.
	Run  string
	From int64
	// Rows have each line at most once. They may be empty.
	Rows []Row
	// Advance ends the window if it is not nil.
	Advance *Advance
}

// Advance moves the watermark.
type Advance struct {
	Watermark int64
	// Counts are those of the run so far.
	Counts Counts
}
