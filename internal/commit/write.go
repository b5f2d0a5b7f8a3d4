package commit

import (
	"cmp"
	"context"
	"slices"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"sqlwriter/internal/breaker"
	"sqlwriter/internal/fault"
	"sqlwriter/internal/invoice"
)

// divided is the number of parts of a refused range. Four parts need as many requests as two (4*log4(n) = 2*log2(n)),
// and repeat a third of the range instead of all of it. Four connections take them at once.
const divided = 4

// oneByOne is the number of consecutive documents that fail alone before the next ones are sent one by one. Where most
// documents are bad, dividing costs more requests than it saves.
const oneByOne = 4

// divideFor is the time limit of dividing in one invocation. Documents undecided then are put off, so that the
// documents behind them do not wait longer.
const divideFor = 2 * time.Minute

// divideInHurry replaces divideFor for batches of the feed within hurryFor after one that ran out of time. However many
// bad documents follow each other, a good one behind them does not wait two minutes for each hundred.
const (
	divideInHurry = 20 * time.Second
	hurryFor      = 10 * time.Minute
)

// Codes of documents that were put off without a result.
const (
	codeUndecided = "undecided"
	codeCutOff    = "cut_off"
)

// writer is the fifth stage: it writes documents to SQL.
type writer struct {
	*requester
	purpose               Purpose
	maxDocuments, maxRows int
	// overwrite, notComparable and releases are those of the batch. takesCommitted says that it takes committed
	// documents over.
	overwrite                     []int64
	notComparable, takesCommitted bool
	releases                      []Release
	// divideUntil ends the search for bad documents.
	divideUntil time.Time
	// ranOut is when a batch of the feed last ran out of time for dividing, in epoch seconds.
	ranOut *atomic.Int64
	// undecided is true after the time for finding bad documents ran out.
	undecided bool
	// spare has a place for each connection that this instance's batches may use for parts beside their own.
	spare chan struct{}
}

// connection takes a spare connection for a part. There is none while the breaker wants one request at a time, nor
// after a request that failed like an outage: several at once would put off more documents before the breaker opens.
func (w *writer) connection() bool {
	if !w.breaker.Parallel() || w.timeout.Load() > 0 {
		return false
	}
	select {
	case w.spare <- struct{}{}:
		return true
	default:
		return false
	}
}

// release gives n spare connections back.
func (w *writer) release(n int) {
	for range n {
		<-w.spare
	}
}

// write gives each document that waits its result. After an error, which is of dependency scope, the documents without
// a result were not written.
func (w *writer) write(ctx context.Context, works []inflight) error {
	var items []Item
	var at []int
	for i := range works {
		if works[i].needsResult() && works[i].doc.Problem == nil {
			it := ItemOf(works[i].doc.Document)
			switch {
			case w.mode == Rewrite:
				it.Overwrite, it.NotComparable = w.overwrite, w.notComparable
				it.Releases = slices.DeleteFunc(slices.Clone(w.releases), func(r Release) bool {
					return r.Document != it.DocumentID
				})
			case w.takesCommitted:
				it = TakenOver(works[i].doc.Document)
			}
			items, at = append(items, it), append(at, i)
		}
	}
	if !slices.ContainsFunc(works, func(w inflight) bool { return w.needsResult() }) {
		return nil // all have a result: what they wait for is its record
	}
	results, done, err := w.apply(ctx, items)
	for j, i := range at {
		if done[j] {
			works[i].answer(results[j])
		}
	}
	for i := range works {
		// while SQL fails these errors are not recorded: the next try finds them again
		if d := works[i].doc; err == nil && works[i].needsResult() && d.Problem != nil {
			works[i].answer(result{err: d.Problem})
		}
	}
	w.breaker.Note(ctx, breaker.FeedLag{}) // an applied document proves the failures beside it
	return err
}

// size is how many works go into the next request. The breaker may lower it.
func (w *writer) size(ctx context.Context, works []inflight) (int, error) {
	limit, err := w.breaker.MaxDocuments(ctx)
	if err != nil {
		return 0, err
	}
	items := make([]Item, len(works)) // only the number of lines counts
	for i := range works {
		items[i].Duplicates = works[i].doc.Duplicates
	}
	return requestsOf(items, min(limit, w.maxDocuments), w.maxRows)[0][1], nil
}

// requestsOf divides items into requests of at most maxItems documents and maxRows rows. A document is never split: one
// with more rows is a request by itself.
func requestsOf(items []Item, maxItems, maxRows int) [][2]int {
	var parts [][2]int
	from, rows := 0, 0
	for i, it := range items {
		if i > from && (i-from >= maxItems || rows+it.Rows() > maxRows) {
			parts = append(parts, [2]int{from, i})
			from, rows = i, 0
		}
		rows += it.Rows()
	}
	if from < len(items) {
		parts = append(parts, [2]int{from, len(items)})
	}
	return parts
}

// applying is the state of one call of apply.
type applying struct {
	w       *writer
	items   []Item
	results []result
	// done marks the valid results.
	done []bool
	// inRow counts consecutive documents that failed alone.
	inRow int
}

// apply writes items and gives each its result. It stops at an error of a dependency: done marks the valid results, and
// the other items were not written.
func (w *writer) apply(ctx context.Context, items []Item) (results []result, done []bool, err error) {
	a := &applying{w: w, items: items, results: make([]result, len(items)), done: make([]bool, len(items))}
	limit, err := w.breaker.MaxDocuments(ctx)
	if err != nil {
		return a.results, a.done, err
	}
	tries := contentionTries
	if w.oneByOne {
		limit, tries = 1, 1
	}
	for _, part := range requestsOf(items, min(limit, w.maxDocuments), w.maxRows) {
		if part[0] > 0 && w.outOfTime() && w.oneByOne {
			break // the next tick takes the remaining documents first
		}
		if part[0] > 0 && w.outOfTime() && w.undecided {
			a.leaveUndecided(part[0], len(items),
				fault.New(fault.Contention, "commit: apply", codeUndecided,
					"the time for finding bad documents was over before it was sent"))
			break
		}
		if err := a.write(ctx, part[0], part[1], tries); err != nil {
			return a.results, a.done, err
		}
	}
	return a.results, a.done, nil
}

// part is a range of items for one request.
type part struct {
	from, to int
	// cause is the error of the refused request that it is a part of; nil if there was none.
	cause error
}

func (p part) size() int { return p.to - p.from }

// answer is what SQL said to the request for a part.
type answer struct {
	outcomes []DocumentOutcome
	err      error
}

// write makes one request for items[from:to]. An error that is not a dependency's does not name the document. The range
// is therefore divided until each bad document is alone (promise G6). It starts from all documents, not only the newest
// of each line: when the newer one turns out bad, the older one is written after all.
//
// Parts whose turn comes next are under way together, as far as connections are free. Their answers are taken in order.
func (a *applying) write(ctx context.Context, from, to, tries int) error {
	for waiting := []part{{from: from, to: to}}; len(waiting) > 0; tries = 1 {
		if waiting[0].cause != nil && a.w.outOfTime() {
			for _, p := range waiting {
				a.leaveUndecided(p.from, p.to, p.cause)
			}
			return nil
		}
		var together []part
		together, waiting = a.next(waiting)
		answers, stopped := a.send(ctx, together, tries)
		var again []part
		for i, p := range together {
			parts, err := a.take(ctx, p, answers[i])
			stopped = cmp.Or(stopped, err)
			again = append(again, parts...)
		}
		if stopped != nil {
			return stopped
		}
		waiting = append(again, waiting...)
	}
	return nil
}

// next gives the parts that are sent together, and the others. Parts with a line in common are not sent together: one
// of them would lose the race, and its document would be blamed or put off.
func (a *applying) next(waiting []part) (together, others []part) {
	lines := map[int64]bool{}
	for len(waiting) > 0 {
		p := waiting[0]
		if p.cause != nil && a.inRow >= oneByOne {
			p.to = p.from + 1
		}
		if len(together) > 0 && (a.names(p, lines) || !a.w.connection()) {
			break
		}
		for _, it := range a.items[p.from:p.to] {
			for position := range it.Rows() {
				lines[it.Line(position)] = true
			}
		}
		together = append(together, p)
		if waiting[0].from = p.to; waiting[0].size() == 0 {
			waiting = waiting[1:]
		}
	}
	return together, waiting
}

// names reports whether a part has one of lines.
func (a *applying) names(p part, lines map[int64]bool) bool {
	return slices.ContainsFunc(a.items[p.from:p.to], func(it Item) bool {
		for position := range it.Rows() {
			if lines[it.Line(position)] {
				return true
			}
		}
		return false
	})
}

// send makes one request for each part, all at once. It gives the first error of a dependency, which ends the other
// requests. Whether that is an outage is found out when none is under way.
func (a *applying) send(ctx context.Context, together []part, tries int) ([]answer, error) {
	answers := make([]answer, len(together))
	requests, parts := errgroup.WithContext(ctx)
	for i, p := range together {
		requests.Go(func() error {
			outcomes, err := a.w.request(parts, a.items[p.from:p.to], tries)
			if err == nil && len(outcomes) != p.size() {
				err = fault.New(fault.Internal, "commit: apply", fault.CodeBug, "%d outcomes for %d documents",
					len(outcomes), p.size())
			}
			answers[i] = answer{outcomes, err}
			if stops(err) {
				return err
			}
			return nil
		})
	}
	err := requests.Wait()
	a.w.release(len(together) - 1)
	a.w.breaker.Confirm(ctx, err)
	return answers, err
}

// stops reports whether an error says that no request can succeed now.
func stops(err error) bool { return fault.IsDependency(err) && !fault.Has(err, fault.OthersAnswered) }

// take notes the results of a part, or gives its parts if it was refused. The error is a dependency's.
func (a *applying) take(ctx context.Context, p part, got answer) (parts []part, err error) {
	switch {
	case got.err == nil:
		for i, o := range got.outcomes {
			a.note(p.from+i, result{outcome: o, err: missingError(o)})
		}
		a.inRow = 0
		return nil, nil
	case stops(got.err):
		return nil, got.err
	case p.size() > 1:
		size := (p.size() + divided - 1) / divided
		for from := p.from; from < p.to; from += size {
			parts = append(parts, part{from, min(p.to, from+size), got.err})
		}
		return parts, nil
	case fault.Has(got.err, fault.OthersAnswered) && !a.w.breaker.FailedAlone(ctx, a.items[p.from].DocumentID, got.err):
		return nil, got.err
	}
	a.inRow++
	a.note(p.from, result{err: blameAlone(got.err)})
	return nil, nil
}

// outOfTime reports whether the time for dividing is over.
func (w *writer) outOfTime() bool { return !w.now().Before(w.divideUntil) }

// leaveUndecided leaves items[from:to] undecided. None of them is blamed, because most may be good.
func (a *applying) leaveUndecided(from, to int, cause error) {
	a.w.undecided = true
	if a.w.purpose == FromFeed {
		a.w.ranOut.Store(a.w.now().Unix())
	}
	for i := from; i < to; i++ {
		a.note(i, result{err: fault.Wrap(fault.Contention, "commit: apply", codeUndecided,
			"put off: its batch has documents that cannot be written, and the time for finding those was over", cause)})
	}
}

func (a *applying) note(i int, r result) { a.results[i], a.done[i] = r, true }

// missingError is the document's own error: the sink refused it, or one of its lines does not exist.
func missingError(o DocumentOutcome) error {
	if o.Refused != nil || o.Verdict != invoice.OutcomeMissing {
		return o.Refused
	}
	err := fault.New(fault.Document, "commit: apply", "missing_detail_row",
		"document %s: no row in IVCE_DTL for line %s: expected every line to exist, nothing was written",
		o.DocumentID, idList(o.Missing()))
	err.Condition = fault.MissingRow
	return err
}
