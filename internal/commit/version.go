package commit

import (
	"context"
)

// versioner is the fourth stage: it records the version of documents whose id has no time, before the first write.
type versioner struct {
	patcher     patcher
	transitions transitions
	parallel    int
	tally       *tally
}

// version gives each document that will be written a version. A document with a Problem is not written. The error is of
// dependency scope.
func (v versioner) version(ctx context.Context, works []inflight) error {
	return each(works, v.parallel, func(w *inflight) bool {
		return w.needsResult() && w.doc.NeedsVersion && w.doc.Problem == nil
	}, func(w *inflight) error {
		defer guard(v.tally, w)
		return v.patcher.version(ctx, w, v.transitions)
	})
}
