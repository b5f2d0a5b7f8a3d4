package commit

import (
	"context"
	"encoding/json"
	"slices"
	"time"

	"sqlwriter/internal/events"
	"sqlwriter/internal/fault"
	"sqlwriter/internal/invoice"
)

// look counts the documents of raws, pages of the orphans as the tick read them, that the feed should have brought (ADR
// 0022): they were pending for long enough, and late says that nobody had written them. Too deep a document counts in
// any case: the feed stops at it.
func (t *tick) look(raws []json.RawMessage, late map[string]bool) {
	m := &t.missed
	for _, raw := range raws {
		d, err := t.r.commit.o.Reader.Read(raw, t.now)
		ts := time.Unix(d.TS, 0)
		deep := invoice.TooDeep(raw)
		if err != nil || d.State.Status != invoice.Pending || t.now.Sub(ts) < invoice.OrphanAge ||
			!deep && !late[d.ID] {
			continue
		}
		if m.Documents++; m.Oldest.IsZero() || ts.Before(m.Oldest) {
			m.Oldest = ts.UTC()
		}
		switch {
		case deep:
			m.Sample, m.Code = d.ID, invoice.CodeTooDeep
		case m.Sample == "":
			m.Sample = d.ID
		}
	}
}

// broughtLate reports whether an outcome shows that nobody wrote the document before the timer. What is unchanged was
// written before: the feed brought it, and its outcome was not recorded.
func broughtLate(o invoice.Outcome) bool {
	return slices.Contains([]invoice.Outcome{
		invoice.OutcomeApplied, invoice.OutcomeSuperseded, invoice.OutcomeRetryScheduled, invoice.OutcomeFailed,
	}, o)
}

// tellMissed notes what a tick found, and logs it once it is no coincidence. A tick that failed and found nothing knows
// nothing, and one that found nothing ends nothing while the feed stops at a document that is still too deep.
func (t *tick) tellMissed(ctx context.Context, err error) {
	t.found.Missed = t.missed.Documents
	if t.missed.Documents == 0 && (err != nil || t.stopsStill(ctx)) {
		return
	}
	m := t.r.commit.breaker.NoteMissed(ctx, t.missed)
	if !m.Holds() {
		return
	}
	f := events.Fields{
		Documents: m.Documents, Document: m.Sample, OldestS: int64(m.At.Sub(m.Oldest) / time.Second), Code: m.Code,
	}
	if m.Code != "" {
		f.Kind = fault.Document
	}
	events.For(ctx, t.r.commit.o.Log).Write(events.FeedMissed, f)
}

// stopsStill reports whether the document at which the feed stopped in an earlier tick is as deep as before, or cannot
// be read.
func (t *tick) stopsStill(ctx context.Context) bool {
	m := t.r.commit.breaker.Seen().Control.Missed
	if m.Code == "" {
		return false
	}
	raw, err := t.r.commit.docs.Read(ctx, m.Sample)
	return !fault.Has(err, fault.Gone) && (err != nil || invoice.TooDeep(raw))
}
