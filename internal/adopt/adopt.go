package adopt

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"sqlwriter/internal/fault"
	"sqlwriter/internal/invoice"
	"sqlwriter/internal/timer"
)

// Bounds of a run.
const (
	// maxRows is how many rows go into one page: far below the 5,000 locks at which SQL Server locks a whole table.
	maxRows = 1000
	// firstWindow is the first window in seconds. A window that holds few documents is followed by one twice as long; one
	// that holds more than mostDocuments is given up, and tried again up to where half of those lie that came.
	firstWindow   = 24 * 60 * 60
	fewDocuments  = 2500
	mostDocuments = 10_000
	// forever ends the last window: the year 10000. What is touched while we read is still in it.
	forever = 253_402_300_800
	// mostRepeats is how often in a row a window is tried again after a throttled or lost request.
	mostRepeats = 8
	// firstRepeat and lastRepeat bound the waits between such tries: doubling.
	firstRepeat = time.Second
	lastRepeat  = 30 * time.Second
)

// Options configure an Adoption. Zero values mean the defaults that are named.
type Options struct {
	// SysName is the environment whose documents are ours.
	SysName string
	// By is kept with the run.
	By string
	// Rate is the most documents read in a second; 0 is as fast as it goes.
	Rate int
	// WriterMayWork accepts that somebody finishes documents meanwhile, as for a dry run before the old writer is stopped.
	WriterMayWork bool
	// Now is the clock, Wait sleeps unless the context ends first.
	Now  func() time.Time
	Wait func(ctx context.Context, d time.Duration) error
	// OnPage is told of every page that was read, OnSkip of every document that says nothing for the ledger. A window that
	// is read again tells of its documents again.
	OnPage func(Progress)
	OnSkip func(id string, reason Reason)
}

// Progress is how far a run is.
type Progress struct {
	// Counts are those of the whole run, the window under way included; Adopted and Marked are not known yet.
	Counts Counts
	// Until is the _ts that the window under way reaches to, at most now.
	Until time.Time
}

// Adoption fills the ledger from documents that were finished before us. It is used once.
type Adoption struct {
	docs   Documents
	ledger Ledger
	o      Options
	// few and most are fewDocuments and mostDocuments; tests have smaller ones.
	few, most int
	// began is when Run was called, read is how many documents came since.
	began time.Time
	read  int
}

// New makes an Adoption over the two ports.
func New(docs Documents, ledger Ledger, o Options) *Adoption {
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Wait == nil {
		o.Wait = timer.Wait
	}
	if o.OnPage == nil {
		o.OnPage = func(Progress) {}
	}
	if o.OnSkip == nil {
		o.OnSkip = func(string, Reason) {}
	}
	return &Adoption{docs: docs, ledger: ledger, o: o, few: fewDocuments, most: mostDocuments}
}

// Run continues the run that is under way, or begins one, and brings it to its end. Whatever stops it, calling it again
// goes on from there. Errors by kind: infrastructure, throttled, quota; contention, condition Changed, when somebody else
// adopts at the same time, or finishes documents (code "still_written"): the run then stays open, because what is finished
// behind its back would be in no ledger.
func (a *Adoption) Run(ctx context.Context) (State, error) {
	a.began = a.o.Now()
	s, err := a.ledger.State(ctx)
	if err != nil {
		return s, err
	}
	if s.Phase != Running {
		if s, err = a.ledger.Begin(ctx, s, a.o.By); err != nil {
			return s, err
		}
	}
	length, repeats := int64(firstWindow), 0
	for s.Watermark < forever {
		w, err := a.window(ctx, s, a.end(s.Watermark, length))
		switch {
		case err != nil && repeats < mostRepeats && passes(err):
			if err := a.o.Wait(ctx, repeatAfter(err, repeats)); err != nil {
				return s, fault.Wrap(fault.Infrastructure, "adopt: run", "cancelled", "stopped while waiting for another try", err)
			}
			repeats++
			continue
		case err != nil:
			return s, err
		case !w.whole:
			length = w.half()
		case w.documents < a.few:
			length *= 2
		}
		repeats = 0
		if w.whole {
			s.Watermark, s.Counts = w.to, w.counts
		}
	}
	return a.ledger.Finish(ctx, s.Run, s.Watermark)
}

// end is where a window ends that begins at from. The container's clock and ours differ, so the last few minutes are one
// window without an end.
func (a *Adoption) end(from, length int64) int64 {
	now := a.began.Add(-invoice.ClockSkew).Unix()
	if from >= now {
		return forever
	}
	return min(from+length, now)
}

// passes reports whether an error passes by itself: the request was throttled or lost a race.
func passes(err error) bool {
	kind := fault.KindOf(err)
	return kind == fault.Throttled || kind == fault.Contention && !fault.Has(err, fault.Changed)
}

// repeatAfter is the wait before a window is tried again.
func repeatAfter(err error, repeats int) time.Duration {
	if e := fault.As(err); e.RetryAfter > 0 {
		return e.RetryAfter
	}
	return min(lastRepeat, firstRepeat<<repeats)
}

// window is one stretch of _ts under way.
type window struct {
	a        *Adoption
	run      string
	from, to int64
	// counts are those of the run with this window.
	counts Counts
	// documents is how many came, finished or not; whole is false when they were too many and the window was given up.
	documents int
	whole     bool
	// during counts documents that were finished after the run was called, example is one of them.
	during  int
	example string
	// seconds are the _ts of the documents that came.
	seconds []int64
	// rows wait for being written, the newest of each line.
	rows map[int64]Row
}

// window reads one window and writes its rows; the watermark moves with the last of them. Two results for one line are
// ordered here as everywhere (invoice.Version), so only the newer one is sent; the ledger's guard does the rest.
func (a *Adoption) window(ctx context.Context, s State, to int64) (*window, error) {
	w := &window{a: a, run: s.Run, from: s.Watermark, to: to, counts: s.Counts.plus(Counts{}), whole: true, rows: map[int64]Row{}}
	err := a.docs.Window(ctx, a.o.SysName, w.from, w.to, func(page []json.RawMessage) (bool, error) {
		for _, raw := range page {
			w.take(raw)
		}
		if w.documents > a.most && w.to-w.from > 1 && w.to < forever {
			w.whole = false
			return false, nil
		}
		for len(w.rows) >= maxRows {
			if err := w.write(ctx, nil); err != nil {
				return false, err
			}
		}
		a.o.OnPage(Progress{Counts: w.counts, Until: time.Unix(min(w.to, a.o.Now().Unix()), 0).UTC()})
		return true, a.pace(ctx, len(page))
	})
	if err != nil || !w.whole {
		return w, err
	}
	if w.during > 0 && !a.o.WriterMayWork {
		return w, errors.Join(w.write(ctx, nil), w.stillWritten())
	}
	return w, w.write(ctx, &Advance{Watermark: w.to, Counts: w.counts})
}

// half is the length of a window that half of the documents which came would lie in.
func (w *window) half() int64 {
	slices.Sort(w.seconds)
	return max(1, w.seconds[len(w.seconds)/2]-w.from)
}

// take turns one document into rows.
func (w *window) take(raw json.RawMessage) {
	d, err := invoice.Read(raw, w.a.o.Now())
	w.documents++
	w.seconds = append(w.seconds, d.TS)
	switch {
	case err != nil:
		w.skip("", NoID)
		return
	case d.SysName != w.a.o.SysName: // the filter of some service may know no case
		return
	case !finished(d):
		w.counts.Open++
		if d.State.Status == invoice.Processing {
			w.counts.Processing++
		}
		return
	}
	w.counts.Documents++
	if finishedAt(d).After(w.a.began) {
		w.during++
		w.example = d.ID
	}
	rows, reason := RowsOf(d, w.a.o.Now())
	if reason != "" {
		w.skip(d.ID, reason)
		return
	}
	w.counts.Lines += len(rows)
	if rows[0].Outcome == Adopted && rows[0].HashVersion == Unproven {
		w.counts.Unproven++
	}
	for _, r := range rows {
		if other, twice := w.rows[r.Line]; !twice || newer(r, other) {
			w.rows[r.Line] = r
		}
	}
}

func (w *window) stillWritten() error {
	return &fault.Error{
		Kind: fault.Contention, Condition: fault.Changed, Code: "still_written", Op: "adopt: run",
		Reason: fmt.Sprintf("%d documents were committed or failed while the adoption ran, %s among them: stop the old writer, and adopt again", w.during, w.example),
	}
}

func (w *window) skip(id string, reason Reason) {
	w.counts.Skipped[reason]++
	w.a.o.OnSkip(id, reason)
}

// write writes one page: at most maxRows of the rows that wait, in the order of their lines, so that two runs take locks
// in one order.
func (w *window) write(ctx context.Context, advance *Advance) error {
	lines := slices.Sorted(maps.Keys(w.rows))
	lines = lines[:min(maxRows, len(lines))]
	p := Page{Run: w.run, From: w.from, Rows: make([]Row, len(lines)), Advance: advance}
	for i, line := range lines {
		p.Rows[i] = w.rows[line]
		delete(w.rows, line)
	}
	written, err := w.a.ledger.Page(ctx, p)
	if err != nil {
		return err
	}
	w.counts.Known += written.Known
	return nil
}

// pace waits as long as the rate asks for.
func (a *Adoption) pace(ctx context.Context, documents int) error {
	a.read += documents
	if a.o.Rate <= 0 {
		return nil
	}
	due := a.began.Add(time.Duration(float64(a.read) / float64(a.o.Rate) * float64(time.Second)))
	if ahead := due.Sub(a.o.Now()); ahead > 0 {
		if err := a.o.Wait(ctx, ahead); err != nil {
			return fault.Wrap(fault.Infrastructure, "adopt: run", "cancelled", "stopped while keeping to the rate", err)
		}
	}
	return nil
}
