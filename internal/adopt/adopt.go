package adopt

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"sqlwriter/internal/commit"
	"sqlwriter/internal/fault"
	"sqlwriter/internal/invoice"
	"sqlwriter/internal/timer"
)

const (
	// maxRows is the number of rows of one page, far below the 5,000 locks at which SQL Server locks the whole table.
	maxRows = 1000
	// maxDocuments is the number of documents of one request to the container.
	maxDocuments = 1000
	// beginning is 2015-01-01 as a _ts. The service is not older, so the first window ends there.
	beginning = 1_420_070_400
	// longest and shortest bound the length of a window in seconds: 30 days, and an hour. After a window with more than
	// mostDocuments the length is halved; after one with less than fewDocuments it doubles.
	longest       = 30 * 24 * 60 * 60
	shortest      = 60 * 60
	fewDocuments  = 2500
	mostDocuments = 10_000
	// forever ends the last window: the year 10000. It includes documents that change during the run.
	forever = 253_402_300_800
	// maxRepeats is how often a throttled request, or one that met contention, is repeated.
	maxRepeats = 8
	// firstRepeat and lastRepeat bound the doubling waits between repeats.
	firstRepeat = time.Second
	lastRepeat  = 30 * time.Second
)

// Options configure an Adoption. Each zero value means the default that its comment names.
type Options struct {
	// SysName is the environment.
	SysName string
	// Reader reads the documents.
	Reader invoice.Reader
	// By is stored with the run.
	By string
	// Before, if not zero, is the time of the copy that the database was restored from: documents that ended later have
	// no ledger rows. A run that is continued keeps the one that it has.
	Before time.Time
	// Rate is the most documents read per second; 0 means unlimited.
	Rate int
	// DryRun counts the documents from the beginning, and uses no ledger. Another program may finish documents
	// meanwhile.
	DryRun bool
	// Now is the clock. Wait sleeps until d has passed or the context ends.
	Now  func() time.Time
	Wait func(ctx context.Context, d time.Duration) error
	// OnPage is called for every page read, OnSkip for every document without ledger rows.
	OnPage func(Progress)
	OnSkip func(id string, reason Reason)
}

// Progress is the progress of a run.
type Progress struct {
	// Counts are those of the run including the current window. Adopted and Marked are not known yet.
	Counts Counts
	// Until is the _ts at the end of the current window, at most now.
	Until time.Time
}

// Adoption fills the ledger from documents that were finished before. It is used once.
type Adoption struct {
	finder commit.Finder
	ledger Ledger
	o      Options
	// few and most are fewDocuments and mostDocuments; tests set smaller ones.
	few, most int
	// began is when Run was called; read is the number of documents since.
	began time.Time
	read  int
}

// New makes an Adoption over its two ports. A dry run needs no ledger.
func New(finder commit.Finder, ledger Ledger, o Options) *Adoption {
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
	return &Adoption{finder: finder, ledger: ledger, o: o, few: fewDocuments, most: mostDocuments}
}

// Run continues the unfinished run or begins a new one, and completes it. After any error, call it again to continue. A
// dry run returns its counts, in no phase.
//
// Errors by kind: infrastructure, throttled, quota; contention, condition Changed, if another adoption runs at the same
// time. The same kind with code "still_written" means that another program finishes documents. The run then stays open,
// because the ledger would lack those documents.
func (a *Adoption) Run(ctx context.Context) (State, error) {
	a.began = a.o.Now()
	s, err := a.begin(ctx)
	if err != nil {
		return s, err
	}
	if s.Watermark == 0 {
		s.Counts.Before = a.o.Before
	}
	length := int64(longest)
	for s.Watermark < forever {
		w := &window{
			a: a, run: s.Run, from: s.Watermark, to: a.end(s.Watermark, length),
			counts: s.Counts.plus(Counts{}), rows: map[int64]Row{},
		}
		if err := w.process(ctx); err != nil {
			return s, err
		}
		switch {
		case w.documents > a.most:
			length = max(shortest, length/2)
		case w.documents < a.few:
			length = min(longest, 2*length)
		}
		s.Watermark, s.Counts = w.to, w.counts
	}
	if a.o.DryRun {
		return s, nil
	}
	return a.ledger.Finish(ctx, s.Run, s.Watermark)
}

// begin returns the state of the unfinished run, or of a new one.
func (a *Adoption) begin(ctx context.Context) (State, error) {
	if a.o.DryRun {
		return State{}, nil
	}
	s, err := a.ledger.State(ctx)
	if err != nil || s.Phase == Running {
		return s, err
	}
	return a.ledger.Begin(ctx, s, a.o.By)
}

// end is the end of the window that begins at from. The container's clock and ours differ, so the last minutes are one
// window without an end.
func (a *Adoption) end(from, length int64) int64 {
	now := a.began.Add(-invoice.ClockSkew).Unix()
	switch {
	case from < beginning:
		return beginning
	case from >= now:
		return forever
	}
	return min(from+length, now)
}

// repeat makes a request again while it is throttled or meets contention.
func (a *Adoption) repeat(ctx context.Context, request func() error) error {
	for repeats := 0; ; repeats++ {
		err := request()
		if err == nil || repeats == maxRepeats || !isTransient(err) {
			return err
		}
		if err := a.o.Wait(ctx, repeatAfter(err, repeats)); err != nil {
			return fault.Wrap(fault.Infrastructure, "adopt: run", "cancelled",
				"stopped while waiting for another try", err)
		}
	}
}

// isTransient reports whether an error passes without a change: throttled, or contention that is not a changed state.
func isTransient(err error) bool {
	kind := fault.KindOf(err)
	return kind == fault.Throttled || kind == fault.Contention && !fault.Has(err, fault.Changed)
}

// repeatAfter is the wait before a request is repeated.
func repeatAfter(err error, repeats int) time.Duration {
	if e := fault.As(err); e.RetryAfter > 0 {
		return e.RetryAfter
	}
	return min(lastRepeat, firstRepeat<<repeats)
}

// window is the window that is being processed.
type window struct {
	a        *Adoption
	run      string
	from, to int64
	// counts are those of the run including this window.
	counts Counts
	// documents is the number of documents, finished or not.
	documents int
	// during counts documents that were finished after Run was called; example is one of them.
	during  int
	example string
	// rows are not yet written; only the newest of each line.
	rows map[int64]Row
}

// process reads the window and writes its rows; the last rows move the watermark. Of two results for one line only the
// newer one is sent (invoice.Version). The ledger's guard compares it with existing rows.
func (w *window) process(ctx context.Context) error {
	for continuation, more := "", true; more; more = continuation != "" {
		var page []invoice.Projection
		if err := w.a.repeat(ctx, func() error {
			found, err := w.a.finder.Find(ctx, commit.Query{
				SysName: w.a.o.SysName, From: w.from, To: w.to, Members: w.a.o.Reader.Mapping.Members(),
				Size: maxDocuments,
			}, continuation)
			if err == nil {
				page, continuation = found.Documents, found.Next
			}
			return err
		}); err != nil {
			return err
		}
		for _, raw := range page {
			w.add(raw)
		}
		for len(w.rows) >= maxRows {
			if err := w.write(ctx, nil); err != nil {
				return err
			}
		}
		w.a.o.OnPage(Progress{Counts: w.counts, Until: time.Unix(min(w.to, w.a.o.Now().Unix()), 0).UTC()})
		if err := w.a.pace(ctx, len(page)); err != nil {
			return err
		}
	}
	if w.during > 0 && !w.a.o.DryRun {
		return errors.Join(w.write(ctx, nil), w.stillWritten())
	}
	return w.write(ctx, &Advance{Watermark: w.to, Counts: w.counts})
}

// add converts one document into rows.
func (w *window) add(raw invoice.Projection) {
	d, err := w.a.o.Reader.Read(raw, w.a.o.Now())
	w.documents++
	switch {
	case err != nil:
		w.skip("", NoID)
		return
	case !isEnded(d):
		w.counts.Open++
		if d.State.Status == invoice.Processing {
			w.counts.Processing++
		}
	}
	end, at := lastEnd(d)
	if end == "" {
		return
	}
	w.counts.Documents++
	if at.After(w.a.began) {
		w.during++
		w.example = d.ID
	}
	rows, reason := RowsOf(d, w.a.o.Now(), w.counts.Before)
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
		Reason: fmt.Sprintf(
			"%d documents were committed or failed during the adoption, %s among them: stop the old writer, and adopt again", w.during, w.example),
	}
}

func (w *window) skip(id string, reason Reason) {
	w.counts.Skipped[reason]++
	w.a.o.OnSkip(id, reason)
}

// write writes one page of at most maxRows rows, ordered by line, so that two runs take locks in the same order.
func (w *window) write(ctx context.Context, advance *Advance) error {
	lines := slices.Sorted(maps.Keys(w.rows))
	lines = lines[:min(maxRows, len(lines))]
	p := Page{Run: w.run, From: w.from, Rows: make([]Row, len(lines)), Advance: advance}
	for i, line := range lines {
		p.Rows[i] = w.rows[line]
		delete(w.rows, line)
	}
	if w.a.o.DryRun {
		return nil
	}
	return w.a.repeat(ctx, func() error { return w.a.ledger.Page(ctx, p) })
}

// pace waits to keep to the rate.
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
