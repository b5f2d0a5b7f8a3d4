package writer

import (
	"context"
	"maps"
	"slices"
	"time"

	"sqlwriter/internal/fault"
)

// Blame by contrast (design.md section 3): a document is to blame only when others were written meanwhile. What fails on
// every document is a build's or a schema's fault, stops everything, and costs nobody a retry.

const (
	// noteEvery is how old what the control document says of success and lag may be before it is written again.
	noteEvery = 5 * time.Second
	// mostSuspects is how many different documents with one code and no success between make it systemic. More of them are
	// remembered, the latest, so that each probe tries others; and mostCodes is for how many codes that is done.
	mostSuspects = 20
	mostTried    = 100
	mostCodes    = 8
	// headStart is how long the probe of a systemic gate is left to those who have documents that were not tried before: a
	// tick of the recovery timer is among it.
	headStart = 6 * time.Minute
)

// wrote takes in what a request wrote. A document that was applied is the contrast that clears all suspicion; for a
// systemic gate one that is found written is enough to close it.
func (g *Gate) wrote(ctx context.Context, a *Admission, items []Item, outcomes []Outcome) {
	applied, holds := false, false
	for i, o := range outcomes {
		if i < len(items) && !items[i].FailureMark {
			applied = applied || o.Verdict == Applied
			holds = holds || o.Verdict == Applied || o.Verdict == Unchanged
		}
	}
	g.mu.Lock()
	if applied {
		g.appliedAt, g.suspects = g.o.Now(), nil
	}
	systemic := g.control.Gate.Kind == fault.Systemic && g.control.Gate.Open()
	g.mu.Unlock()
	if holds && systemic {
		a.passed()
		g.update(ctx, gateInput{event: gateAnswers, by: g.o.Instance})
	}
}

// suspect notes that a document failed by itself. It is known when others were applied since it failed with this code before:
// then nothing else is under suspicion for it. enough says that it is the last that was needed: so many different ones failed
// with this code and none was applied between.
func (g *Gate) suspect(code, id string) (known, enough bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, s := range contrasted(g.control.Suspects, g.appliedAt) {
		if s.Code == code && !s.ContrastAt.IsZero() && slices.Contains(s.Documents, id) {
			return true, false
		}
	}
	g.suspects = addSuspect(g.suspects, code, g.o.Now(), id)
	return false, len(g.suspectsOf(code)) >= mostSuspects
}

// suspectsOf are the documents that failed with a code as far as this instance knows. g.mu is held.
func (g *Gate) suspectsOf(code string) []string {
	for _, s := range mergeSuspects(contrasted(g.control.Suspects, g.appliedAt), g.suspects) {
		if s.Code == code && s.ContrastAt.IsZero() {
			return s.Documents
		}
	}
	return nil
}

// contrasted clears the suspicions that a success has contrasted: their documents are to blame themselves. They stay known,
// so that many bad documents behind which nothing else waits do not look like a bad build again and again.
func contrasted(all []Suspects, success time.Time) []Suspects {
	all = slices.Clone(all)
	for i, s := range all {
		if s.ContrastAt.IsZero() && s.Since.Before(success) {
			all[i].ContrastAt = success
		}
	}
	for i := len(all) - 1; i >= 0; i-- { // one for each code
		first := slices.IndexFunc(all, func(s Suspects) bool { return s.Code == all[i].Code && !s.ContrastAt.IsZero() })
		if all[i].ContrastAt.IsZero() || first == i {
			continue
		}
		all[first].Documents = latest(all[first].Documents, all[i].Documents)
		all = slices.Delete(all, i, i+1)
	}
	return all
}

// tried reports whether a document failed already, so that a probe learns more from another.
func (g *Gate) tried(id string) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return slices.ContainsFunc(mergeSuspects(g.control.Suspects, g.suspects), func(s Suspects) bool { return slices.Contains(s.Documents, id) })
}

// failedProbe reports whether a probe failed with a document although the neutral statement had been answered.
func (g *Gate) failedProbe(id string) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.failedProbes[id]
}

// othersFirst reports whether a probe with documents that failed already should be left to others, which may have better ones.
func (g *Gate) othersFirst() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	state := g.control.Gate
	return state.Kind == fault.Systemic && state.Open() && g.o.Now().Before(state.OpenUntil.Add(headStart))
}

// systemic opens the gate for a code that every document fails with, and answers the error of those who wait for it.
func (g *Gate) systemic(ctx context.Context, a *Admission, code string) error {
	err := fault.New(fault.Systemic, opGate, code,
		"different documents fail with %s, one after the other, and none was written between: the build or the schema is to blame", code)
	g.note(ctx, FeedLag{})
	g.fails(ctx, gateInput{
		event: gateFails, kind: fault.Systemic, code: code, reason: err.Reason, by: g.o.Instance, version: g.o.Version, probe: a.pending(),
	})
	return err
}

// addSuspect adds documents to those that failed with a code; the list is as short as the question allows.
func addSuspect(all []Suspects, code string, now time.Time, ids ...string) []Suspects {
	all = slices.Clone(all)
	at := slices.IndexFunc(all, func(s Suspects) bool { return s.Code == code && s.ContrastAt.IsZero() })
	if at < 0 {
		if len(all) >= mostCodes {
			all = all[1:]
		}
		at, all = len(all), append(all, Suspects{Code: code, Since: now})
	}
	all[at].Documents = latest(all[at].Documents, ids)
	return all
}

// latest adds documents to a list and keeps as many as are remembered.
func latest(list, ids []string) []string {
	list = slices.Clone(list)
	for _, id := range ids {
		if !slices.Contains(list, id) {
			list = append(list, id)
		}
	}
	return list[max(0, len(list)-mostTried):]
}

// mergeSuspects is what two instances know together.
func mergeSuspects(a, b []Suspects) []Suspects {
	for _, s := range b {
		a = addSuspect(a, s.Code, s.Since, s.Documents...)
	}
	return a
}

// note writes what all instances should know: successes, suspects, how far the feed is behind. It costs at most one write
// in noteEvery, and none when nothing is new.
func (g *Gate) note(ctx context.Context, lag FeedLag) {
	g.mu.Lock()
	c, applied, suspects := g.control, g.appliedAt, g.suspects
	g.mu.Unlock()
	cleared := slices.ContainsFunc(c.Suspects, func(s Suspects) bool { return s.ContrastAt.IsZero() && s.Since.Before(applied) })
	due := applied.Sub(c.AppliedAt) >= noteEvery || len(suspects) > 0 || cleared ||
		(lag != (FeedLag{}) && lag.At.Sub(c.Feed.At) >= noteEvery && lag.Seconds != c.Feed.Seconds)
	if !due {
		return
	}
	done := g.change(ctx, storeTries, func(c *Control) bool {
		if applied.After(c.AppliedAt) {
			c.AppliedAt, c.AppliedBy = applied, g.o.Version
		}
		c.Suspects = mergeSuspects(contrasted(c.Suspects, c.AppliedAt), suspects)
		if lag.At.After(c.Feed.At) {
			c.Feed = lag
		}
		return true
	})
	if done {
		g.mu.Lock()
		g.suspects = nil // they are in the control document now, or in our copy of it
		g.mu.Unlock()
	}
}

// contrast reports whether some document was applied since a moment, by this build.
func (g *Gate) contrast(ctx context.Context, since time.Time) bool {
	if g.appliedSince(since) {
		return true
	}
	g.forget() // it may just have happened elsewhere
	g.refresh(ctx)
	return g.appliedSince(since)
}

// appliedHere reports whether this instance applied a document since a moment.
func (g *Gate) appliedHere(since time.Time) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return !g.appliedAt.Before(since) && !g.appliedAt.IsZero()
}

func (g *Gate) appliedSince(since time.Time) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return !g.appliedAt.Before(since) || (!g.control.AppliedAt.Before(since) && g.control.AppliedBy == g.o.Version)
}

// mayBury reports whether the app may make one more poison pill in this hour.
func (g *Gate) mayBury(ctx context.Context) bool {
	g.refresh(ctx)
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.buried(g.control.Poison) < g.o.MaxPoisonPerHour
}

// buried is how many poison pills were made in the running hour.
func (g *Gate) buried(p PoisonCount) int {
	if !p.Hour.Equal(g.o.Now().Truncate(time.Hour)) {
		return 0
	}
	return p.Count
}

// bury takes one of the poison pills that the app may make in an hour; false when there is none left. One that was counted
// and is tried again, because a dependency failed at its mark, is not counted twice.
func (g *Gate) bury(ctx context.Context, pill string) bool {
	hour := g.o.Now().Truncate(time.Hour)
	g.mu.Lock()
	counted := g.pills[pill].Equal(hour)
	g.mu.Unlock()
	if counted {
		return true
	}
	taken := g.take(ctx, hour)
	if taken {
		g.mu.Lock()
		defer g.mu.Unlock()
		maps.DeleteFunc(g.pills, func(_ string, at time.Time) bool { return !at.Equal(hour) })
		g.pills[pill] = hour
	}
	return taken
}

// take counts one more poison pill of an hour, if there may be one.
func (g *Gate) take(ctx context.Context, hour time.Time) bool {
	return g.change(ctx, storeTries, func(c *Control) bool {
		n := g.buried(c.Poison)
		if n >= g.o.MaxPoisonPerHour {
			return false
		}
		c.Poison = PoisonCount{Hour: hour, Count: n + 1}
		return true
	})
}
