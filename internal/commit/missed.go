package commit

import (
	"context"
	"encoding/json"
	"slices"
	"time"

	"sqlwriter/internal/breaker"
	"sqlwriter/internal/events"
	"sqlwriter/internal/fault"
	"sqlwriter/internal/invoice"
)

// succession is the time from the beginning of the first to the end of the last of ticks without an error. A longer pause
// than an orphan's age ends it: nobody knows what was well meanwhile.
type succession struct{ first, last time.Time }

// tickBegins gives the beginning of the succession to which a tick belongs.
func (r *Recover) tickBegins(now time.Time) time.Time {
	r.mu.Lock()
	defer r.mu.Unlock()
	if now.Sub(r.well.last) > invoice.OrphanAge {
		r.well.first = now
	}
	return r.well.first
}

// tickEnds lets the succession go on, or ends it.
func (r *Recover) tickEnds(err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.well.last = r.commit.o.Now(); err != nil {
		r.well = succession{}
	}
}

// missing is what a tick learns about documents that the feed did not bring (ADR 0022).
type missing struct {
	// since is the _ts from which on the feed had no excuse; never says that it has one now.
	since time.Time
	never bool
	found breaker.Missed
}

// missingSince begins the search of one tick. The feed has an excuse for what became pending before the breaker closed,
// before the present succession of ticks, or before any range was last behind.
func (r *Recover) missingSince(ctx context.Context, wellSince, now time.Time) missing {
	view := r.commit.breaker.View(ctx)
	closed, ok := r.commit.breaker.ClosedSince(ctx)
	m := missing{since: wellSince, never: !ok || view.Lost, found: breaker.Missed{At: now.UTC()}}
	for _, excuse := range []time.Time{closed, view.Control.Feed.BehindAt} {
		if excuse.After(m.since) {
			m.since = excuse
		}
	}
	return m
}

// look counts the documents of raws, pages of the orphans as the tick read them, that the feed should have brought. late are
// those that were still to be written. Too deep a document counts without exception.
func (m *missing) look(raws []json.RawMessage, late map[string]bool, now time.Time) {
	for _, raw := range raws {
		d, err := invoice.Read(raw, now)
		ts := time.Unix(d.TS, 0)
		if err != nil || d.State.Status != invoice.Pending || now.Sub(ts) < invoice.OrphanAge {
			continue
		}
		deep := invoice.TooDeep(raw)
		if !deep && (m.never || !late[d.ID] || !ts.After(m.since)) {
			continue
		}
		f := &m.found
		if f.Documents++; f.Oldest.IsZero() || ts.Before(f.Oldest) {
			f.Oldest = ts.UTC()
		}
		switch {
		case deep:
			f.Sample, f.Code = d.ID, invoice.CodeTooDeep
		case f.Sample == "":
			f.Sample = d.ID
		}
	}
}

// broughtLate reports whether an outcome shows that nobody wrote the document before the timer. What is unchanged was
// written before: the feed brought it, and its outcome was not recorded.
func broughtLate(outcome string) bool {
	switch outcome {
	case string(Applied), string(Superseded), string(invoice.RetryScheduled), string(invoice.Failed):
		return true
	}
	return false
}

// tellMissing logs and records what a tick found. A tick that found no orphan at all, and no error, ends what an earlier one
// found. A tick that found excused ones changes nothing.
func (t *tick) tellMissing(ctx context.Context, err error) {
	m, b := t.missing.found, t.r.commit.breaker
	cleared := err == nil && t.found.Found[Orphans] == 0 && !slices.Contains(t.found.More, Orphans)
	if m.Documents == 0 {
		if cleared && t.stoppedAt(ctx) == "" {
			b.NoteMissed(ctx, breaker.Missed{})
		}
		return
	}
	if m.Code == "" {
		if at := t.stoppedAt(ctx); at != "" {
			m.Sample, m.Code = at, invoice.CodeTooDeep
		}
	}
	t.found.Missed = m.Documents
	b.NoteMissed(ctx, m)
	f := events.Fields{Documents: m.Documents, Document: m.Sample, OldestS: int64(m.At.Sub(m.Oldest) / time.Second), Code: m.Code}
	if m.Code != "" {
		f.Kind = fault.Document
	}
	events.For(ctx, t.r.commit.o.Log).Write(events.FeedMissed, f)
}

// stoppedAt gives the document at which the feed stopped by an earlier tick, if it may stop there still. That tick committed
// it, so no other one finds it.
func (t *tick) stoppedAt(ctx context.Context) string {
	m := t.r.commit.breaker.View(ctx).Control.Missed
	if m.Code != invoice.CodeTooDeep {
		return ""
	}
	raw, err := t.r.commit.docs.Read(ctx, m.Sample)
	if fault.Has(err, fault.Gone) || (err == nil && json.Valid(raw) && !invoice.TooDeep(raw)) {
		return ""
	}
	return m.Sample
}
