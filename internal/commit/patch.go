package commit

import (
	"context"

	"sqlwriter/internal/events"
	"sqlwriter/internal/fault"
	"sqlwriter/internal/invoice"
)

// patcher records states in documents.
type patcher struct {
	docs  Documents
	tally *tally
}

// patch records a state, and the minimal state when that does not fit. It gives the new etag and the recorded state.
func (p patcher) patch(ctx context.Context, d invoice.Snapshot, s invoice.State) (string, invoice.State, error) {
	etag, err := p.docs.Record(ctx, d, s)
	if fault.Has(err, fault.TooLarge) {
		s = minimal(s)
		etag, err = p.docs.Record(ctx, d, s)
	}
	return etag, s, err
}

// refused handles a state that could not be recorded (docs/requirements.md R19), and gives the step that follows. The
// error is of dependency scope.
func (p patcher) refused(d invoice.Snapshot, s invoice.State, err error) (step, error) {
	switch {
	case fault.Has(err, fault.Changed):
		return changed, nil
	case fault.IsDependency(err):
		return finished, err
	case fault.Has(err, fault.Gone):
		p.tally.count(d.ID, invoice.OutcomeGone, "")
	case fault.Has(err, fault.TooLarge):
		p.tally.add(resultOf(d, invoice.OutcomeLeft, err))
		p.tally.log.Write(events.DocumentTooLarge,
			events.Fields{Document: d.ID, Status: string(s.Status), Outcome: string(s.Outcome)}.Of(err))
	default:
		p.tally.leave(d, err)
	}
	return finished, nil
}

// version records the version of a document whose id has no time. A later snapshot has another _ts and would otherwise
// get another version.
func (p patcher) version(ctx context.Context, w *inflight, t transitions) error {
	next := t.withVersion(w.doc.State, w.doc.Version.US)
	etag, recorded, err := p.patch(ctx, w.doc, next)
	if err == nil {
		w.doc.ETag, w.doc.State, w.doc.NeedsVersion = etag, recorded, false
		return nil
	}
	w.step, err = p.refused(w.doc, next, err) // without a version nothing may be written
	return err
}
