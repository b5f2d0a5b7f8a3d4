package adopt

import (
	"context"
	"encoding/json"
	"time"

	"sqlwriter/internal/invoice"
)

// Documents is the container as the adoption reads it.
type Documents interface {
	// Window gives the documents of one environment whose _ts is at least from and less than to (seconds since 1970),
	// whatever their status, page by page, in no order, until there are none or page answers more = false or an error,
	// which is handed on as it is. A document holds every member that invoice.Read looks at and may lack the others. One
	// that changes meanwhile may come twice. Errors by kind: infrastructure, throttled.
	Window(ctx context.Context, sysName string, from, to int64, page func([]json.RawMessage) (more bool, err error)) error
}

// Ledger keeps the ledger's rows and, beside them, how far the adoption is.
type Ledger interface {
	// State answers how far it is; the zero State when nothing was said yet. Errors by kind: infrastructure, throttled.
	State(ctx context.Context) (State, error)
	// Begin begins a run at watermark 0 in the place of what was there, and answers it. The state must still be the one
	// that was read, otherwise: contention, condition Changed, and nothing is done. Errors by kind: infrastructure,
	// throttled, quota, contention.
	Begin(ctx context.Context, was State, who string) (State, error)
	// Page writes rows as far as the guard lets it, each line once, and with an Advance moves the watermark: all or
	// nothing. The run must still stand where the page says, otherwise: contention, condition Changed. The same page
	// again changes nothing. The user's tables are neither read nor written. Errors by kind: infrastructure, throttled,
	// quota, contention.
	//
	// The guard: a line that the ledger does not know is taken. A line that it knows is taken when the ledger's version
	// is older; and when it names this very document, not from a later _ts, and a failure mark meets a row that is none,
	// or content meets a failure mark, or content whose hash is another where the two hashes can be compared or the
	// ledger's is Unproven.
	Page(ctx context.Context, p Page) (Written, error)
	// Finish ends the run and adds to its counts what the ledger holds of it. The run must stand where it is said to,
	// otherwise: contention, condition Changed. Errors by kind: infrastructure, throttled, quota, contention.
	Finish(ctx context.Context, run string, watermark int64) (State, error)
}

// Phase is how far the adoption of a database is.
type Phase string

// The phases. The zero value means that nothing was said yet.
const (
	// Running: begun and not at its end; the ledger cannot be relied on.
	Running Phase = "running"
	// Done: every document that was finished before is in the ledger.
	Done Phase = "done"
	// Empty: somebody said that nothing was written before us.
	Empty Phase = "empty"
)

// State is what the database says of its adoption.
type State struct {
	Phase Phase
	// Run names the run; its rows in the ledger carry it as their write id. 32 hex digits; empty before the first.
	Run string
	// Watermark is the second before which (of _ts) everything is in the ledger.
	Watermark int64
	// Counts are those of the windows before the watermark.
	Counts Counts
	// By began the run, or said empty.
	By string
	// Started and Finished are by the database's clock; zero where it has not happened.
	Started, Finished time.Time
}

// Adopted reports whether the ledger can be relied on, so that the app may commit.
func (s State) Adopted() bool { return s.Phase == Done || s.Phase == Empty }

// Counts say what a run has seen and done.
type Counts struct {
	// Documents are the finished ones (committed or failed) of our environment, Lines the lines that they name.
	Documents int `json:"documents"`
	Lines     int `json:"lines"`
	// Adopted and Marked are the lines whose ledger row is from this run: content, and failure marks. Known by the end of
	// the run only.
	Adopted int `json:"adopted"`
	Marked  int `json:"marked"`
	// Known are lines whose ledger row named the document before this run.
	Known int `json:"known"`
	// Unproven are documents that were changed after they were committed (see Unproven).
	Unproven int `json:"unproven"`
	// Skipped counts documents that say nothing for the ledger, by reason.
	Skipped map[Reason]int `json:"skipped,omitempty"`
	// Open are documents that nobody has finished yet; Processing are those among them that the old writer holds.
	Open       int `json:"open"`
	Processing int `json:"processing"`
}

// Older are lines that the ledger has from a newer document.
func (c Counts) Older() int { return max(0, c.Lines-c.Adopted-c.Marked-c.Known) }

// plus adds up.
func (c Counts) plus(o Counts) Counts {
	sum := Counts{
		Documents: c.Documents + o.Documents, Lines: c.Lines + o.Lines, Adopted: c.Adopted + o.Adopted, Marked: c.Marked + o.Marked,
		Known: c.Known + o.Known, Unproven: c.Unproven + o.Unproven, Open: c.Open + o.Open, Processing: c.Processing + o.Processing,
		Skipped: map[Reason]int{},
	}
	for _, skipped := range []map[Reason]int{c.Skipped, o.Skipped} {
		for reason, n := range skipped {
			sum.Skipped[reason] += n
		}
	}
	return sum
}

// Outcome is the ledger's word for how a line came to what it holds.
type Outcome string

// The outcomes. Page writes the last two; Applied is what Sink.Apply wrote.
const (
	Applied Outcome = "applied"
	// Adopted: somebody wrote the document's content before us.
	Adopted Outcome = "adopted"
	// Failed: the line carries the document's failure mark.
	Failed Outcome = "failed"
)

// Unproven is the hash version of content of which it is not known that the line holds it: the document was changed after
// it was committed. No content has it, so a later snapshot of the document is written (docs/requirements.md R16).
const Unproven = 0

// Row is the ledger's row for one line.
type Row struct {
	Line       int64
	Version    invoice.Version
	DocumentID string
	// SourceTS is the _ts that the document was read with.
	SourceTS int64
	// Hash, HashVersion and RowHash name the content; empty and 0 for a failure mark.
	Hash        string
	HashVersion int
	RowHash     string
	Outcome     Outcome
}

// Page is a part of a run's rows.
type Page struct {
	// Run and From name the run and the watermark that the page builds on.
	Run  string
	From int64
	// Rows have each line once. There may be none.
	Rows []Row
	// Advance, when not nil, ends the window.
	Advance *Advance
}

// Advance moves the watermark.
type Advance struct {
	Watermark int64
	// Counts are those of the whole run so far; the ledger adds what this very page finds Known.
	Counts Counts
}

// Written is what a page did.
type Written struct {
	// Taken are the rows that are in the ledger now, Known those whose line named the document already, from before this
	// run. The others met something newer, or are there from the same run.
	Taken, Known int
}
