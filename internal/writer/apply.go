package writer

import (
	"context"
	"slices"
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
	// contrasted says that another document was applied beside this one, or after it: a failure is its own.
	contrasted bool
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

// applying is one call of apply under way.
type applying struct {
	p       *pass
	items   []Item
	results []result
	// done tells which results count.
	done []bool
	// failed are the documents that failed by themselves since the last one was applied.
	failed []int
}

// note keeps the result of one item. What failed before an applied one has its contrast.
func (a *applying) note(i int, r result) {
	a.results[i], a.done[i] = r, true
	switch {
	case r.outcome.Verdict == Applied:
		for _, j := range a.failed {
			a.results[j].contrasted = true
		}
		a.failed = nil
	case own(r) && !r.contrasted:
		a.failed = append(a.failed, i)
	}
}

// apply writes items and gives each its result. When a dependency is unwell it stops: done tells which results count,
// and the others are as they were.
func (p *pass) apply(ctx context.Context, items []Item) (results []result, done []bool, err error) {
	a := &applying{p: p, items: items, results: make([]result, len(items)), done: make([]bool, len(items))}
	for _, part := range plan(items, p.limit(), p.c.o.MaxRows) {
		tries := contentionTries
		if p.spendOnContention(0) {
			tries = 1
		}
		if err := a.divide(ctx, part[0], part[1], tries); err != nil {
			return a.results, a.done, err
		}
	}
	return a.results, a.done, nil
}

// divide makes one request for items[from:to]. A server error that is neither the dependency's nor a lost race
// names no document, so the range is divided until the ones to blame stand alone (promise G6). It starts from all
// documents, not from the pruned ones: when the newer of two results for a line turns out bad, the older one is
// written after all.
func (a *applying) divide(ctx context.Context, from, to, tries int) error {
	p := a.p
	begin := p.c.o.Now()
	outcomes, err := p.request(ctx, a.items[from:to], tries)
	contended := fault.KindOf(err) == fault.Contention
	spent := false
	if contended {
		spent = p.spendOnContention(p.c.o.Now().Sub(begin))
	}
	switch {
	case err == nil && len(outcomes) != to-from:
		err = fault.New(fault.Internal, "writer: apply", "outcome_count", "%d outcomes for %d documents", len(outcomes), to-from)
	case err == nil:
		return a.answered(ctx, from, outcomes)
	case fault.IsDependency(err):
		return err
	}
	if to-from == 1 {
		return a.is(ctx, from, result{err: blameAlone(err)})
	}
	if contended && spent {
		for i := from; i < to; i++ { // nobody is blamed: among them may be some that lost nothing
			put := fault.Wrap(fault.Contention, "writer: apply", fault.CodeOf(err), "put off: the time for lost races is spent", err)
			if err := a.is(ctx, i, result{err: put}); err != nil {
				return err
			}
		}
		return nil
	}
	for part := range divided {
		begin, end := from+(to-from)*part/divided, from+(to-from)*(part+1)/divided
		if begin == end || !slices.Contains(a.done[begin:end], false) {
			continue
		}
		if err := a.divide(ctx, begin, end, 1); err != nil {
			return err
		}
	}
	return nil
}

// answered notes the outcomes of a request. Lines that are missing beside others that were written are the document's own.
func (a *applying) answered(ctx context.Context, from int, outcomes []Outcome) error {
	contrasted := slices.ContainsFunc(outcomes, func(o Outcome) bool { return o.Verdict == Applied })
	for i, o := range outcomes {
		r := result{outcome: o, err: missingError(o), contrasted: contrasted}
		if contrasted && !a.done[from+i] {
			a.note(from+i, r)
			continue
		}
		if err := a.is(ctx, from+i, r); err != nil {
			return err
		}
	}
	return nil
}

// is notes the result of one item, and who is under suspicion for it. A result that is known already stays.
func (a *applying) is(ctx context.Context, i int, r result) error {
	if a.done[i] {
		return nil
	}
	known, enough := a.p.suspect(a.items[i].DocumentID, r.err)
	r.contrasted = known
	if a.note(i, r); !enough {
		return nil
	}
	return a.contrast(ctx, fault.CodeOf(r.err))
}

// contrasts is how many documents are asked whether they can be written, before the build or the schema is blamed.
const contrasts = 5

// contrast decides between so many bad documents in a row and a build or schema that every document fails on: a few that
// were not tried yet, from all over the request, are written by themselves. Writing one again that was written before would
// prove less: an UPDATE may work where every INSERT fails.
func (a *applying) contrast(ctx context.Context, code string) error {
	var open []int
	for i := range a.items {
		if !a.done[i] {
			open = append(open, i)
		}
	}
	if len(open) == 0 && a.p.more {
		return nil // the next request will tell
	}
	for n := range min(contrasts, len(open)) {
		i := open[n*len(open)/min(contrasts, len(open))]
		outcomes, err := a.p.request(ctx, a.items[i:i+1], 1)
		switch {
		case fault.IsDependency(err):
			return err
		case err != nil || len(outcomes) != 1:
			a.p.suspect(a.items[i].DocumentID, err) // it is met again, and judged then; or at the next probe others are tried
			continue
		}
		if a.note(i, result{outcome: outcomes[0], err: missingError(outcomes[0])}); outcomes[0].Verdict == Applied {
			return nil
		}
	}
	return a.p.c.gate.systemic(ctx, a.p.admission(), code)
}

// spendOnContention adds up the time that lost races took and reports whether there is none left.
func (p *pass) spendOnContention(d time.Duration) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.contention += d
	return p.contention >= contentionBudget
}

// The tries of a request whose connection breaks although the dependency is well: a range of documents is then divided, a
// document alone is to blame for it.
const (
	brokenTries      = 2
	brokenTriesAlone = 3
	// CodeBreaks is the code of a document whose request breaks its connection each time.
	CodeBreaks = "breaks_its_connection"
)

// request sends one request, again after a lost race, tries times with jitter.
func (p *pass) request(ctx context.Context, items []Item, tries int) ([]Outcome, error) {
	broken := 0
	for try := 1; ; try++ {
		begin := p.c.o.Now()
		outcomes, err := p.send(ctx, items)
		p.countSQL(p.c.o.Now().Sub(begin))
		switch {
		case fault.KindOf(err) == fault.Contention && try < tries:
		case p.broke(ctx, err):
			broken++
			if broken == brokenTries && len(items) > 1 || broken == brokenTriesAlone {
				p.c.gate.answered(ctx, p.admission(), false) // as a probe it is the document's failure, not the database's
				return nil, &fault.Error{
					Kind: fault.Internal, Code: CodeBreaks, Op: "writer: apply", Err: err,
					Reason: "the connection breaks at this request each time, while the database answers others",
				}
			}
		default:
			return outcomes, err
		}
		wait := time.Duration(float64(contentionWait<<min(try-1, 10)) * (0.5 + p.c.o.Draw()))
		if werr := p.c.o.Wait(ctx, wait); werr != nil {
			return nil, fault.Wrap(fault.Infrastructure, "writer: apply", "cancelled", "stopped while waiting for another try", werr)
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
	return p.admission().Apply(ctx, p.c.sink, items, p.mode)
}

// broke reports whether a request failed by itself: the connection broke or no answer came, and a statement that concerns
// no document is answered all the same.
func (p *pass) broke(ctx context.Context, err error) bool {
	if !fault.Has(err, fault.Broken) || ctx.Err() != nil {
		return false
	}
	return p.admission().Neutral(ctx, p.heartbeat) == nil
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
	err := fault.New(fault.Document, "writer: apply", "missing_detail_row",
		"document %s: no row in IVCE_DTL for line %s: expected every line to exist, nothing was written",
		o.DocumentID, idList(o.Missing()))
	err.Condition = fault.MissingRow
	return err
}
