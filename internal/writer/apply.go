package writer

import (
	"context"
	"time"

	"sqlwriter/internal/fault"
)

// contentionTries is how often an undivided request is made before a lost race is looked at more closely. Its parts are
// made once: a lock that is held costs LOCK_TIMEOUT at every try, and the healthy neighbours wait meanwhile.
const contentionTries = 3

// contentionBudget bounds the time that one invocation spends on lost races. After it, whatever still loses is put off as
// if it stood alone, uncounted, so that the feed goes on.
const contentionBudget = 60 * time.Second

// contentionWait is the first wait between two tries of a request that lost a race.
const contentionWait = 20 * time.Millisecond

// divided is into how many parts a refused range is cut. Four need as many requests as two (4*log4(n) is 2*log2(n)) and
// write less in vain: a third of the range again instead of all of it.
const divided = 4

// result is what became of one item: a verdict, or the error that is its own.
type result struct {
	outcome Outcome
	err     error
}

// failed reports whether the item has an error of its own.
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

// apply writes items and gives each its result. When a dependency is unwell it stops: done tells which results count,
// and the others are as they were.
func (p *pass) apply(ctx context.Context, items []Item) (results []result, done []bool, err error) {
	results, done = make([]result, len(items)), make([]bool, len(items))
	for _, part := range plan(items, p.c.o.MaxDocuments, p.c.o.MaxRows) {
		tries := contentionTries
		if p.spendOnContention(0) {
			tries = 1
		}
		if err := p.applyRange(ctx, items, part[0], part[1], tries, results, done); err != nil {
			return results, done, err
		}
	}
	return results, done, nil
}

// applyRange makes one request for items[from:to]. A server error that is neither the dependency's nor a lost race
// names no document, so the range is divided until the ones to blame stand alone (promise G6). It starts from all
// documents, not from the pruned ones: when the newer of two results for a line turns out bad, the older one is
// written after all.
func (p *pass) applyRange(ctx context.Context, items []Item, from, to, tries int, results []result, done []bool) error {
	begin := p.c.o.Now()
	outcomes, err := p.request(ctx, items[from:to], tries)
	contended := fault.KindOf(err) == fault.Contention
	spent := false
	if contended {
		spent = p.spendOnContention(p.c.o.Now().Sub(begin))
	}
	switch {
	case err == nil && len(outcomes) != to-from:
		err = fault.New(fault.Internal, "writer: apply", "outcome_count", "%d outcomes for %d documents", len(outcomes), to-from)
	case err == nil:
		for i, o := range outcomes {
			results[from+i], done[from+i] = result{outcome: o, err: missingError(o)}, true
		}
		return nil
	case fault.IsDependency(err):
		return err
	}
	if to-from == 1 {
		results[from], done[from] = result{err: blameAlone(err)}, true
		return nil
	}
	if contended && spent {
		for i := from; i < to; i++ { // nobody is blamed: among them may be some that lost nothing
			results[i], done[i] = result{err: fault.Wrap(fault.Contention, "writer: apply", fault.CodeOf(err), "put off: the time for lost races is spent", err)}, true
		}
		return nil
	}
	for part := range divided {
		a, b := from+(to-from)*part/divided, from+(to-from)*(part+1)/divided
		if a == b {
			continue
		}
		if err := p.applyRange(ctx, items, a, b, 1, results, done); err != nil {
			return err
		}
	}
	return nil
}

// spendOnContention adds up the time that lost races took and reports whether there is none left.
func (p *pass) spendOnContention(d time.Duration) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.contention += d
	return p.contention >= contentionBudget
}

// request sends one request, again after a lost race, tries times with jitter.
func (p *pass) request(ctx context.Context, items []Item, tries int) ([]Outcome, error) {
	for try := 1; ; try++ {
		begin := p.c.o.Now()
		outcomes, err := p.c.sink.Apply(ctx, items, p.mode)
		p.countSQL(p.c.o.Now().Sub(begin))
		if fault.KindOf(err) != fault.Contention || try >= tries {
			return outcomes, err
		}
		wait := time.Duration(float64(contentionWait<<(try-1)) * (0.5 + p.c.o.Draw()))
		if werr := p.c.o.Wait(ctx, wait); werr != nil {
			return nil, fault.Wrap(fault.Infrastructure, "writer: apply", "cancelled", "stopped while waiting for another try", werr)
		}
	}
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

// missingError is the document's error when one of its lines does not exist.
func missingError(o Outcome) error {
	if o.Verdict != Missing {
		return nil
	}
	err := fault.New(fault.Document, "writer: apply", "missing_detail_row",
		"document %s: no row in IVCE_DTL for line %s: expected every line to exist, nothing was written",
		o.DocumentID, idList(o.Missing()))
	err.Condition = fault.MissingRow
	return err
}
