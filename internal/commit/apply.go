package commit

import (
	"context"
	"slices"
	"time"

	"sqlwriter/internal/breaker"
	"sqlwriter/internal/fault"
)

// contentionTries is the number of tries of an undivided request that loses races. Its parts get one try: a held lock costs
// LOCK_TIMEOUT at each try, and healthy documents wait meanwhile.
const contentionTries = 3

// contentionWait is the wait after the first try that lost a race.
const contentionWait = 20 * time.Millisecond

// divided is the number of parts of a refused range. Four parts need as many requests as two (4*log4(n) = 2*log2(n)), and
// repeat a third of the range instead of all of it.
const divided = 4

// oneByOne is the number of consecutive documents that fail alone before the next ones are sent one by one. Where most
// documents are bad, dividing costs more requests than it saves.
const oneByOne = 4

// divideFor is the time limit of dividing in one invocation. Documents undecided then are put off, so that the documents
// behind them do not wait longer.
const divideFor = 2 * time.Minute

// divideInHurry replaces divideFor for batches of the feed within hurryFor after one that ran out of time. However many bad
// documents follow each other, a good one behind them does not wait two minutes for each hundred.
const (
	divideInHurry = 20 * time.Second
	hurryFor      = 10 * time.Minute
)

// partTimeout bounds a part of a request that had no answer. Without it the good documents of the request would wait half a
// minute at each level.
const partTimeout = 10 * time.Second

// Codes of documents that were put off without a result.
const (
	codeUndecided = "undecided"
	codeCutOff    = "cut_off"
)

// result is the outcome of one item, or its error. An error of document scope is the document's own; any other error puts
// the document off.
type result struct {
	outcome Outcome
	err     error
}

func (r result) failed() bool { return r.err != nil }

// plan divides items into requests of at most maxItems documents and maxRows rows. A document is never split: one with more
// rows is a request by itself.
func plan(items []Item, maxItems, maxRows int) [][2]int {
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
	p       *pass
	items   []Item
	results []result
	// done marks the valid results.
	done []bool
	// inRow counts consecutive documents that failed alone.
	inRow int
}

// apply writes items and gives each its result. It stops at an error of a dependency: done marks the valid results, and the
// other items were not written.
func (p *pass) apply(ctx context.Context, items []Item) (results []result, done []bool, err error) {
	a := &applying{p: p, items: items, results: make([]result, len(items)), done: make([]bool, len(items))}
	limit, err := p.c.breaker.MaxDocuments(ctx)
	if err != nil {
		return a.results, a.done, err
	}
	tries := contentionTries
	if p.batch.OneByOne {
		limit, tries = 1, 1
	}
	for _, part := range plan(items, min(limit, p.c.o.MaxDocuments), p.c.o.MaxRows) {
		if part[0] > 0 && p.outOfTime() && p.batch.OneByOne {
			break // the next tick takes the remaining documents first
		}
		if part[0] > 0 && p.outOfTime() && p.undecided {
			a.putOff(part[0], len(items), fault.New(fault.Contention, "commit: apply", codeUndecided, "the time for finding bad documents was over before it was sent"))
			break
		}
		if err := a.write(ctx, part[0], part[1], tries); err != nil {
			return a.results, a.done, err
		}
	}
	return a.results, a.done, nil
}

// write makes one request for items[from:to]. An error that is not a dependency's does not name the document. The range is
// therefore divided until each bad document is alone (promise G6).
func (a *applying) write(ctx context.Context, from, to, tries int) error {
	outcomes, err := a.p.request(ctx, a.items[from:to], tries)
	switch {
	case err == nil && len(outcomes) != to-from:
		err = fault.New(fault.Internal, "commit: apply", "outcome_count", "%d outcomes for %d documents", len(outcomes), to-from)
	case err == nil:
		for i, o := range outcomes {
			a.note(from+i, result{outcome: o, err: missingError(o)})
		}
		a.inRow = 0
		return nil
	case fault.IsDependency(err) && !fault.Has(err, fault.OthersAnswered):
		return err
	}
	if to-from > 1 {
		return a.divide(ctx, from, to, err)
	}
	if fault.Has(err, fault.OthersAnswered) && !a.p.c.breaker.FailedAlone(ctx, a.items[from].DocumentID, err) {
		return err
	}
	a.inRow++
	a.note(from, result{err: blameAlone(err)})
	return nil
}

// divide writes the parts of a refused range. It starts from all documents, not only the newest of each line: when the
// newer one turns out bad, the older one is written after all.
func (a *applying) divide(ctx context.Context, from, to int, cause error) error {
	size := (to - from + divided - 1) / divided
	for from < to {
		if a.p.outOfTime() {
			a.putOff(from, to, cause)
			return nil
		}
		end := min(to, from+size)
		if a.inRow >= oneByOne {
			end = from + 1
		}
		if err := a.write(ctx, from, end, 1); err != nil {
			return err
		}
		from = end
	}
	return nil
}

// outOfTime reports whether the time for dividing is over.
func (p *pass) outOfTime() bool { return !p.c.o.Now().Before(p.divideUntil) }

// putOff leaves items[from:to] undecided. None of them is blamed, because most may be good.
func (a *applying) putOff(from, to int, cause error) {
	a.p.undecided = true
	if a.p.batch.Purpose == FromFeed {
		a.p.c.ranOut.Store(a.p.c.o.Now().Unix())
	}
	for i := from; i < to; i++ {
		a.note(i, result{err: fault.Wrap(fault.Contention, "commit: apply", codeUndecided,
			"put off: its batch has documents that cannot be written, and the time for finding those was over", cause)})
	}
}

func (a *applying) note(i int, r result) { a.results[i], a.done[i] = r, true }

// request sends one request, with jitter up to tries times while it loses races. After a broken connection while other
// requests succeed it makes one more try. A failover breaks a whole pool of connections, and no document is to blame for
// that.
func (p *pass) request(ctx context.Context, items []Item, tries int) ([]Outcome, error) {
	var broke error
	for try := 1; ; try++ {
		begin := p.c.o.Now()
		outcomes, err := p.send(ctx, items)
		took := p.c.o.Now().Sub(begin)
		p.countSQL(took)
		if fault.Has(err, fault.OthersAnswered) && !p.batch.OneByOne {
			p.partTimeout.Store(int64(partTimeout))
		}
		switch {
		case fault.KindOf(err) == fault.Contention && try < tries:
		case broke != nil && breaker.IsRefusal(err):
			return nil, broke // a half-open breaker permits one request, whose result decides
		case fault.Has(err, fault.OthersAnswered) && broke == nil && took < partTimeout:
			broke = err
			continue
		default:
			return outcomes, err
		}
		wait := time.Duration(float64(contentionWait<<min(try-1, 10)) * (0.5 + p.c.o.Draw()))
		if werr := p.c.o.Wait(ctx, wait); werr != nil {
			return nil, fault.Wrap(fault.Infrastructure, "commit: apply", "cancelled", "stopped while waiting for another try", werr)
		}
	}
}

// send makes one request. A panic in it counts as a failure of a document: the range is divided like one with a refused
// value, so that its other documents are written.
func (p *pass) send(ctx context.Context, items []Item) (outcomes []Outcome, err error) {
	defer func() {
		if r := recover(); r != nil {
			outcomes, err = nil, p.panicked(r)
		}
	}()
	begin := p.c.o.Now()
	err = p.c.breaker.Do(ctx, len(items), time.Duration(p.partTimeout.Load()), func(ctx context.Context, known breaker.Heartbeat) (err error) {
		outcomes, err = p.c.sink.Apply(ctx, items, p.mode, known)
		return err
	})
	if err != nil {
		return nil, err
	}
	if p.mode == Write && slices.ContainsFunc(outcomes, func(o Outcome) bool { return o.Verdict == Applied }) && !items[0].FailureMark {
		p.c.breaker.Applied(begin)
	}
	return outcomes, nil
}

// blameAlone interprets the error of a request with a single document. A uniqueness or row count that only this document
// can violate is its own error; a lock that is never free is not.
func blameAlone(err error) error {
	e := fault.As(err)
	if e == nil || e.Kind != fault.Contention || e.Condition != fault.OwnWhenAlone {
		return err
	}
	return &fault.Error{Kind: fault.Document, Code: e.Code, Op: e.Op, Reason: e.Reason, Err: err}
}

// missingError is the document's own error: the sink refused it, or one of its lines does not exist.
func missingError(o Outcome) error {
	if o.Refused != nil || o.Verdict != Missing {
		return o.Refused
	}
	err := fault.New(fault.Document, "commit: apply", "missing_detail_row",
		"document %s: no row in IVCE_DTL for line %s: expected every line to exist, nothing was written",
		o.DocumentID, idList(o.Missing()))
	err.Condition = fault.MissingRow
	return err
}
