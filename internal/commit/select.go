package commit

import (
	"time"

	"sqlwriter/internal/fault"
	"sqlwriter/internal/invoice"
)

// selection decides which documents a batch takes.
type selection struct {
	delivery Delivery
	sysName  string
	now      func() time.Time
	// appliedBefore is the _ts before which a postponed document is due early.
	appliedBefore int64
}

// eligibility is that of a document for a batch of this purpose.
func (s selection) eligibility(d invoice.Snapshot) invoice.Eligibility {
	eligibility := d.Eligibility(s.now(), s.sysName)
	switch {
	case (eligibility == invoice.NotDue || eligibility == invoice.Done) && s.delivery.takesOver(d.State.Status):
		return invoice.Eligible
	case eligibility == invoice.NotDue && s.delivery.Purpose == FromTimer && d.State.Postponed &&
		d.TS < s.appliedBefore:
		return invoice.Eligible // others were written since it failed
	case eligibility == invoice.Eligible && s.delivery.Purpose == FromFeed && d.State.Status == invoice.RetryScheduled:
		// retries belong to the timer: on the feed a document's own patch would bring it back before newer ones
		return invoice.NotDue
	}
	return eligibility
}

// takes reports whether the batch takes a document now.
func (s selection) takes(d invoice.Snapshot) bool { return s.eligibility(d) == invoice.Eligible }

// passesOver counts a document that the batch leaves alone.
func (s selection) passesOver(d invoice.Snapshot, t *tally) bool {
	outcome, why := s.delivery.LeavesAlone(d.Document)
	if outcome != "" {
		t.countLeftAlone(d, outcome, why)
	}
	return outcome != ""
}

// selector is the second stage: it takes the eligible documents, and counts the others.
type selector struct {
	selection
	tally *tally
}

// choose gives the documents that the batch takes.
func (s selector) choose(docs []invoice.Snapshot) []inflight {
	var taken []inflight
	for _, d := range docs {
		if eligibility := s.eligibility(d); eligibility != invoice.Eligible {
			s.tally.skip(d, eligibility)
			continue
		}
		if s.passesOver(d, s.tally) {
			continue
		}
		taken = append(taken, inflight{doc: d})
	}
	refuseTwins(taken, func(w *inflight) *invoice.Snapshot { return &w.doc })
	return taken
}

// refuseTwins refuses documents of one batch that have one id, each under another partition key. Rows, ledger and
// evidence name a document by its id.
func refuseTwins[T any](all []T, docOf func(*T) *invoice.Snapshot) {
	n := map[string]int{}
	for i := range all {
		n[docOf(&all[i]).ID]++
	}
	for i := range all {
		if d := docOf(&all[i]); n[d.ID] > 1 {
			d.Problem = fault.New(fault.Document, "commit: read", CodeIDTwice,
				"%d documents have the id %q, each under another partition key: delete all but one", n[d.ID],
				fault.Truncate(d.ID, fault.MaxForeign))
		}
	}
}
