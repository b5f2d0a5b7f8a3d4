package commit

import (
	"context"

	"sqlwriter/internal/breaker"
	"sqlwriter/internal/events"
	"sqlwriter/internal/fault"
)

// recorder is the last stage: it records states in the documents.
type recorder struct {
	patcher     patcher
	transitions transitions
	breaker     *breaker.Breaker
	parallel    int
	tally       *tally
}

// record records the next states with bounded concurrency. A document that changed meanwhile is to be read again. The
// error is of dependency scope; the other documents are recorded all the same.
func (r recorder) record(ctx context.Context, works []inflight) error {
	return each(works, r.parallel, func(w *inflight) bool { return w.step == recordable }, func(w *inflight) error {
		defer guard(r.tally, w)
		return r.put(ctx, w)
	})
}

func (r recorder) put(ctx context.Context, w *inflight) error {
	_, state, err := r.patcher.patch(ctx, w.doc, w.next)
	switch {
	case err == nil:
		w.step = finished
		r.tally.recorded(w.doc, state, w.cause)
		if isOwn(w.cause) && r.transitions.begin(w.doc.State).RetryCount == 0 {
			r.breaker.BeganToFail(ctx, fault.CodeOf(w.cause))
		}
		return nil
	case fault.Has(err, fault.Gone) && w.cause == nil:
		r.tally.log.Write(events.DocumentDeleted,
			events.Fields{Document: w.doc.ID, Outcome: string(w.result.outcome.Verdict)})
	}
	w.step, err = r.patcher.refused(w.doc, state, err)
	return err
}
