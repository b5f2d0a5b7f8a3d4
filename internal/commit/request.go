package commit

import (
	"context"
	"slices"
	"sync/atomic"
	"time"

	"sqlwriter/internal/breaker"
	"sqlwriter/internal/events"
	"sqlwriter/internal/fault"
	"sqlwriter/internal/invoice"
)

// contentionTries is the number of tries of an undivided request that loses races. Its parts get one try: a held lock
// costs LOCK_TIMEOUT at each try, and healthy documents wait meanwhile.
const contentionTries = 3

// contentionWait is the wait after the first try that lost a race.
const contentionWait = 20 * time.Millisecond

// partTimeout bounds a part of a request that had no answer. Without it the good documents of the request would wait
// half a minute at each level. turnTimeout is added where a part first waits for another writer.
const (
	partTimeout = 10 * time.Second
	turnTimeout = 5 * time.Second
)

// requester makes requests to SQL for one batch.
type requester struct {
	sink    Sink
	breaker *breaker.Breaker
	mode    Mode
	// oneByOne is Delivery.OneByOne.
	oneByOne bool
	now      func() time.Time
	draw     func() float64
	wait     func(ctx context.Context, d time.Duration) error
	tally    *tally
	// timeout bounds the requests after one that failed like an outage while others succeeded; zero until then. It is
	// atomic because marks are made concurrently.
	timeout atomic.Int64
}

// request sends one request, with jitter up to tries times while it loses races. After a broken connection while other
// requests succeed it makes one more try. A failover breaks a whole pool of connections, and no document is to blame
// for that. The caller confirms an error (Breaker.Confirm).
func (r *requester) request(ctx context.Context, items []Item, tries int) ([]DocumentOutcome, error) {
	var broke error
	bound := partTimeout
	if r.breaker.TakesTurns() {
		bound += turnTimeout
	}
	for try := 1; ; try++ {
		outcomes, took, err := r.send(ctx, items)
		if fault.Has(err, fault.OthersAnswered) && !r.oneByOne {
			r.timeout.Store(int64(bound))
		}
		switch {
		case fault.KindOf(err) == fault.Contention && try < tries:
		case broke != nil && fault.CodeOf(err) == breaker.CodeOpen:
			return nil, broke // a half-open breaker permits one request, whose result decides
		case fault.Has(err, fault.OthersAnswered) && broke == nil && took < bound:
			broke = err
			continue
		default:
			return outcomes, err
		}
		wait := time.Duration(float64(contentionWait<<min(try-1, 10)) * (0.5 + r.draw()))
		if werr := r.wait(ctx, wait); werr != nil {
			return nil,
				fault.Wrap(fault.Infrastructure, "commit: apply", "cancelled",
					"stopped while waiting for another try", werr)
		}
	}
}

// send makes one request. took is its own time, not that in this instance's queue. A panic in it counts as a failure of
// a document: the range is divided like one with a refused value, so that its other documents are written.
func (r *requester) send(
	ctx context.Context, items []Item,
) (outcomes []DocumentOutcome, took time.Duration, err error) {
	defer func() {
		if p := recover(); p != nil {
			outcomes, err = nil, r.tally.log.Panic("commit: apply", events.Fields{}, p)
		}
	}()
	var begin time.Time
	err = r.breaker.Ask(ctx, len(items), time.Duration(r.timeout.Load()),
		func(ctx context.Context, known breaker.Heartbeat) (err error) {
			begin = r.now()
			defer func() {
				took = r.now().Sub(begin)
				r.tally.requested(took)
			}()
			outcomes, err = r.sink.Apply(ctx, items, r.mode, known)
			return err
		})
	if err != nil {
		return nil, took, err
	}
	if r.mode == Write &&
		slices.ContainsFunc(outcomes, func(o DocumentOutcome) bool { return o.Verdict == invoice.OutcomeApplied }) &&
		!items[0].FailureMark {
		r.breaker.Applied(begin)
	}
	return outcomes, took, nil
}

// blameAlone interprets the error of a request with a single document. A uniqueness or row count that only this
// document can violate is its own error; a lock that is never free is not.
func blameAlone(err error) error {
	e := fault.As(err)
	if e == nil || e.Kind != fault.Contention || e.Condition != fault.OwnWhenAlone {
		return err
	}
	return &fault.Error{Kind: fault.Document, Code: e.Code, Op: e.Op, Reason: e.Reason, Err: err}
}
