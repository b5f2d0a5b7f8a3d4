package breaker

import (
	"context"
	"maps"
	"time"
)

// Proof that a document's failure is its own (docs/requirements.md R40): others got through after it. One number per build says
// when content was last written; everything else is in the document.

const (
	// noteEvery is how old what the control document says of success and lag may be before it is written again.
	noteEvery = 5 * time.Second
	// provenAfter is how long after a failure others must have been written: longer than clocks of instances differ.
	provenAfter = 60 * time.Second
)

// Applied takes in that content was written by a request that began at a moment: never a mark, a rewrite or a preview. The
// beginning counts, because a process may stand still before it learns of the end.
func (b *Breaker) Applied(begin time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.appliedAt = begin
	clear(b.alone)
}

// Proven reports whether this build wrote something at least a minute after a failure. While the control document cannot
// be had nothing is proven.
func (b *Breaker) Proven(ctx context.Context, failedAt time.Time) bool {
	last := b.AppliedAt(ctx)
	return !last.IsZero() && !last.Before(failedAt.Add(provenAfter))
}

// DueBefore is until when a postponed document must have been changed last to be due: others got through since, or so
// shortly before that the clocks may be to blame. That is sooner than proof, so that one document that gets through after a
// break makes all others due at once; zero when nothing got through.
func (b *Breaker) DueBefore(ctx context.Context) time.Time {
	last := b.AppliedAt(ctx)
	if last.IsZero() {
		return last
	}
	return last.Add(provenAfter)
}

// AppliedAt is when this build last wrote content; zero when that is not known.
func (b *Breaker) AppliedAt(ctx context.Context) time.Time {
	c, had := b.shared.get(ctx)
	if !had {
		return time.Time{}
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if last := c.AppliedBy(b.o.Build); last.After(b.appliedAt) {
		return last
	}
	return b.appliedAt
}

// BeganToFail takes in that a document failed for the first time, with a code.
func (b *Breaker) BeganToFail(code string) {
	now := b.o.Now()
	b.mu.Lock()
	defer b.mu.Unlock()
	for i, f := range b.failing {
		if f.Code == code {
			b.failing[i].Documents, b.failing[i].LastAt = f.Documents+1, now
			return
		}
	}
	b.failing = append(b.failing, Failing{Code: code, Documents: 1, Since: now, LastAt: now})
}

// Note writes what all instances should know: successes, failures, how far the feed is behind. It costs at most one write
// in five seconds, and none when nothing is new. Before it tells of a success it raises the heartbeat, so that a database that
// goes back behind what was applied is refused; a success whose heartbeat is not committed is told later. While the heartbeat's
// row is locked successes are told without it, and it is tried once a minute: a lock must not look like an outage.
func (b *Breaker) Note(ctx context.Context, lag FeedLag) {
	c, _ := b.shared.seen()
	now := b.o.Now()
	b.mu.Lock()
	applied, failing, waited := b.appliedAt, b.failing, now.Sub(b.notedAt) >= noteEvery
	success := waited && applied.Sub(c.AppliedBy(b.o.Build)) >= noteEvery
	due := success || (waited && len(failing) > 0) ||
		(lag != (FeedLag{}) && lag.At.Sub(c.Feed.At) >= noteEvery && lag.Seconds != c.Feed.Seconds)
	if due {
		b.failing, b.notedAt = nil, now
	}
	b.mu.Unlock()
	if !due {
		return
	}
	ctx = context.WithoutCancel(ctx)
	var row Heartbeat
	if success = success && !b.state(ctx).Stopped(); success && !b.lockedOut() {
		var err error
		row, err = b.raise(ctx, false)
		success = err == nil
	}
	b.shared.change(ctx, func(c *Control) bool {
		if success {
			c.noteHeartbeat(row)
			c.noteApplied(b.o.Build, applied)
		}
		c.noteFailing(failing, now)
		if lag.At.After(c.Feed.At) {
			c.Feed = lag
		}
		return true
	})
	b.tellMass(now)
}

// tellMass tells each mass failure once.
func (b *Breaker) tellMass(now time.Time) {
	c, _ := b.shared.seen()
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, f := range c.MassFailures(now) {
		if b.loggedMass[f.Code].Equal(f.Since) {
			continue
		}
		b.loggedMass[f.Code] = f.Since
		b.o.Log.Error().Str("event", "mass_failure").Str("code", f.Code).Int("documents", f.Documents).Time("since", f.Since).
			Msg("many documents began to fail with one code: others go on")
	}
}

// MayPoison reports whether the app may make one more poison message in this hour.
func (b *Breaker) MayPoison(ctx context.Context) bool {
	c, _ := b.shared.get(ctx)
	return c.PoisonSince(b.o.Now()) < b.o.MaxPoisonPerHour
}

// TakePoison takes one of the poison messages that the app may make in an hour; false when there is none left. One that was
// counted and is tried again, because a dependency failed at its mark, is not counted twice.
func (b *Breaker) TakePoison(ctx context.Context, pill string) bool {
	now := b.o.Now()
	hour := now.Truncate(time.Hour)
	b.mu.Lock()
	counted := b.pills[pill].Equal(hour)
	b.mu.Unlock()
	if counted {
		return true
	}
	taken := b.shared.change(ctx, func(c *Control) bool {
		n := c.PoisonSince(now)
		if n >= b.o.MaxPoisonPerHour {
			return false
		}
		c.Poison = PoisonCount{Hour: hour, Count: n + 1}
		return true
	})
	if taken {
		b.mu.Lock()
		defer b.mu.Unlock()
		maps.DeleteFunc(b.pills, func(_ string, at time.Time) bool { return !at.Equal(hour) })
		b.pills[pill] = hour
	}
	return taken
}
