package commit

import (
	"context"
	"slices"
	"time"

	"sqlwriter/internal/breaker"
	"sqlwriter/internal/fault"
)

// contentionTries is how often an undivided request is made before a lost race is looked at more closely. Its parts are
// made once: a lock that is held costs LOCK_TIMEOUT at every try, and the healthy neighbours wait meanwhile.
const contentionTries = 3

// contentionWait is the first wait between two tries of a request that lost a race.
const contentionWait = 20 * time.Millisecond

// divided is into how many parts a refused range is cut. Four need as many requests as two (4*log4(n) is 2*log2(n)) and
// write less in vain: a third of the range again instead of all of it.
const divided = 4

// oneByOne is how many documents in a row must have failed alone for those behind them to be sent one by one: where most are
// bad, dividing costs more requests than it saves.
const oneByOne = 4

// divideFor is how long one invocation divides. What is undecided then is put off, so that the documents behind it do not
// wait any longer.
const divideFor = 2 * time.Minute

// divideInHurry is the same for the batches of the feed that come within hurryFor after one that ran out of time: however many
// bad ones come in a row, a good one behind them does not wait two minutes for each hundred.
const (
	divideInHurry = 20 * time.Second
	hurryFor      = 10 * time.Minute
)

// partTimeout bounds a part of a request that had no answer: the good documents beside one that never answers do not wait
// half a minute at each level.
const partTimeout = 10 * time.Second

// Codes of documents that were not judged.
const (
	codeUndecided = "undecided"
	codeCutOff    = "cut_off"
)

// result is what became of one item: a verdict, or an error. An error of document scope is its own; another one puts it off.
type result struct {
	outcome Outcome
	err     error
}

// failed reports whether the item was not written.
func (r result) failed() bool { return r.err != nil }

// plan divides items into requests of at most maxItems documents and maxRows rows. A document is never split, so one
// with more rows than that makes a request by itself.
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

// applying is one call of apply under way.
type applying struct {
	p       *pass
	items   []Item
	results []result
	// done tells which results count.
	done []bool
	// inRow counts the documents that failed alone since one was answered.
	inRow int
}

// apply writes items and gives each its result. When a dependency is unwell it stops: done tells which results count,
// and the others are as they were.
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
			break // the others have their turn in the next tick, before these
		}
		if part[0] > 0 && p.outOfTime() && p.undecided {
			a.putOff(part[0], len(items), fault.New(fault.Contention, "commit: apply", codeUndecided, "its turn did not come"))
			break
		}
		if err := a.write(ctx, part[0], part[1], tries); err != nil {
			return a.results, a.done, err
		}
	}
	return a.results, a.done, nil
}

// write makes one request for items[from:to]. A server error that is not the dependency's names no document, so the range
// is divided until the ones to blame stand alone (promise G6).
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

// divide writes the parts of a range that was refused as a whole. It starts from all documents, not from the pruned ones:
// when the newer of two results for a line turns out bad, the older one is written after all.
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

// outOfTime reports whether the time for finding bad documents is over.
func (p *pass) outOfTime() bool { return !p.c.o.Now().Before(p.divideUntil) }

// putOff leaves items[from:to] undecided. Nobody is blamed: most of them may be good.
func (a *applying) putOff(from, to int, cause error) {
	a.p.undecided = true
	if a.p.batch.Purpose == FromFeed {
		a.p.c.ranOut.Store(a.p.c.o.Now().Unix())
	}
	for i := from; i < to; i++ {
		a.note(i, result{err: fault.Wrap(fault.Contention, "commit: apply", codeUndecided,
			"put off: it came with documents that cannot be written, and the time for finding those was over", cause)})
	}
}

// note keeps the result of one item.
func (a *applying) note(i int, r result) { a.results[i], a.done[i] = r, true }

// request sends one request, again after a lost race, tries times with jitter. One whose connection broke while others are
// answered is made once more: after a failover a whole pool of connections is dead, and no document is to blame for that.
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
			return nil, broke // a half-open breaker lets one request pass: what that met decides
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

// send makes one request. A panic in it is a failure of ours that some document brings about: it is divided like a refused
// value, so that the one to blame stands alone and its neighbours are written.
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

// blameAlone decides what a request that failed for a single document means: a broken uniqueness or row count that
// nobody else can have caused is the document's own; a lock that is never free is not.
func blameAlone(err error) error {
	e := fault.As(err)
	if e == nil || e.Kind != fault.Contention || e.Condition != fault.OwnWhenAlone {
		return err
	}
	return &fault.Error{Kind: fault.Document, Code: e.Code, Op: e.Op, Reason: e.Reason, Err: err}
}

// missingError is the document's error when the sink refused it, or one of its lines does not exist.
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
