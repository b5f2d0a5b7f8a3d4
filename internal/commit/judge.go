package commit

import (
	"context"

	"sqlwriter/internal/breaker"
	"sqlwriter/internal/events"
	"sqlwriter/internal/fault"
	"sqlwriter/internal/invoice"
)

// judge is the sixth stage: it decides what a result means for the document's state.
type judge struct {
	selection
	transitions transitions
	breaker     *breaker.Breaker
	tally       *tally
}

// judge gives each document with a result its step. It counts those whose state stays. The error is of dependency
// scope; the other documents are judged all the same.
func (j judge) judge(ctx context.Context, works []inflight) error {
	return each(works, 1, func(w *inflight) bool { return w.done && w.step == undecided }, func(w *inflight) error {
		defer guard(j.tally, w)
		return j.decide(ctx, w)
	})
}

func (j judge) decide(ctx context.Context, w *inflight) error {
	cur, res := w.doc, w.result
	if supersededByItself(res) {
		w.step = changed
		return nil
	}
	w.step = finished
	// its state stays, whatever it is
	if v := res.outcome.Verdict; v == invoice.OutcomeEdited || v == invoice.OutcomeNotComparable {
		j.tally.countLeftAlone(cur, v, res.outcome.whyLeftAlone())
		return nil
	}
	if cur.State.Status == invoice.Committed && j.delivery.takesOver(invoice.Committed) &&
		(res.failed() || sameContent(w.written, cur)) {
		j.rewritten(cur, res)
		return nil
	}
	w.cause = alone(cur.State, res.err)
	if isOwn(w.cause) && j.takes(cur) && j.ends(ctx, w) {
		w.step = spent
		return nil
	}
	next, allowed := j.next(w)
	switch healing := w.heal && cur.State.Status == invoice.Committed; {
	case allowed:
		w.step, w.next = recordable, next
	case w.heal && fault.IsDependency(w.cause):
		return w.cause // its line may have older content, and no other job reads a committed document
	case healing && res.failed():
		j.tally.leave(cur, w.cause)
	default:
		if healing && res.outcome.Verdict == invoice.OutcomeApplied {
			j.tally.log.Write(events.DocumentHealed, events.Fields{Document: cur.ID})
		}
		j.tally.count(cur.ID, invoice.OutcomeSkipped, "")
	}
	return nil
}

// rewritten counts a committed document that a run wrote again or failed to. Nothing is recorded. A success keeps the
// state true. A failure does not say what SQL has: a line may have the content already, and then a retry or a poison
// message of it would be wrong. What SQL lacks is a finding of the next comparison.
func (j judge) rewritten(cur invoice.Snapshot, res result) {
	switch {
	case !res.failed():
		j.tally.count(cur.ID, res.outcome.Verdict, "")
		return
	case !j.final(res.err):
		j.tally.notFinal(res.err)
		return
	}
	result := resultOf(cur, invoice.OutcomeFailed, res.err)
	result.RetryCount = cur.State.RetryCount
	j.tally.add(result)
	j.tally.log.Write(events.RewriteFailed, events.Fields{Document: cur.ID}.Of(res.err))
}

// final reports whether a committed document of a run has failed. Nobody else tries it again, so a lost race never is,
// and a request that fails like an outage only after many offers of the batch, because a run must end.
func (j judge) final(err error) bool {
	switch {
	case isOwn(err), fault.CodeOf(err) == codeWentBack:
		return true
	case fault.KindOf(err) == fault.Contention:
		return false
	}
	return j.delivery.RetryCount > escapeRetries
}

// ends reports whether an own failure is the document's last: its retries are spent, and the document is proven to be
// the cause, or has failed for a day and may end without proof.
func (j judge) ends(ctx context.Context, w *inflight) bool {
	s := j.transitions.begin(w.doc.State)
	if !usedUp(s, w.cause) {
		return false
	}
	if last, known := invoice.ParseStamp(s.LastErrorAt, j.transitions.loc); known && j.breaker.Proven(ctx, last) {
		w.proven = true
		return true
	}
	first, known := j.transitions.firstFailure(s)
	return known && j.now().Sub(first) >= EndsAlone && j.breaker.MayEndUnproven(ctx)
}

// next is the state to record for a result, and whether it may replace the current one. A verdict on the document's
// current content may always replace it. Any other result only replaces the state of an eligible document.
func (j judge) next(w *inflight) (invoice.State, bool) {
	was := w.doc.State
	if !w.doc.HasTime && was.Version == 0 {
		was.Version = w.written.Version.US // the version in the ledger; a later _ts must not give another
	}
	switch {
	case isOwn(w.cause):
		return j.transitions.failure(was, w.cause), j.takes(w.doc)
	case w.cause != nil:
		return j.transitions.statePutOff(was, w.cause), j.takes(w.doc)
	case was.Status == invoice.Committed:
		return was, false // another writer recorded the same content
	}
	evident := w.result.outcome.Verdict == invoice.OutcomeApplied ||
		w.result.outcome.Verdict == invoice.OutcomeUnchanged
	mayChange := was.Status == invoice.RetryScheduled || j.takes(w.doc)
	return j.transitions.committed(was, w.result.outcome), mayChange || (evident && sameContent(w.written, w.doc))
}
