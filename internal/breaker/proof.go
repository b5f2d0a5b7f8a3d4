package breaker

import (
	"context"
	"maps"
	"time"
)

// A document is given up only if others got through after it failed (docs/requirements.md R40). The control document
// has the time of the last written content for each build, and how many that build gave up without proof; everything
// else is in the document.

const (
	// noteEvery is the shortest time between two updates of success and lag in the control document.
	noteEvery = 5 * time.Second
	// provenAfter is how long after a failure others must have been written. It exceeds the clock differences of
	// instances.
	provenAfter = 60 * time.Second
	// maxUnproven is how many documents a build may give up without proof since it last wrote content. A document that
	// is alone then ends, and a build that breaks every document costs no more.
	maxUnproven = 3
)

// Applied records that a request that began at begin wrote content; marks, rewrites and previews do not count. The
// start counts, because a process may pause before it sees the end.
func (b *Breaker) Applied(begin time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.appliedAt = begin
	clear(b.loneFailures)
}

// Proven reports whether this build wrote content at least a minute after a failure. It is false while the control
// document is not available.
func (b *Breaker) Proven(ctx context.Context, failedAt time.Time) bool {
	last := b.AppliedAt(ctx)
	return !last.IsZero() && !last.Before(failedAt.Add(provenAfter))
}

// EarlyBefore is a time: a postponed document that last changed before it is due early, because its next failure would
// be proven. It is zero when nothing was written, and while no more documents may be given up in this hour: coming
// early would then end none.
func (b *Breaker) EarlyBefore(ctx context.Context) time.Time {
	last := b.AppliedAt(ctx)
	if last.IsZero() || !b.MayPoison(ctx) {
		return time.Time{}
	}
	return last.Add(-provenAfter)
}

// MayEndUnproven reports whether this build may give up another document without proof. It is false while the control
// document is not available.
func (b *Breaker) MayEndUnproven(ctx context.Context) bool {
	c, available := b.shared.get(ctx)
	return available && c.of(b.o.Build).Unproven < maxUnproven
}

// AppliedAt is when this build last wrote content; zero when unknown.
func (b *Breaker) AppliedAt(ctx context.Context) time.Time {
	c, available := b.shared.get(ctx)
	if !available {
		return time.Time{}
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if last := c.AppliedBy(b.o.Build); last.After(b.appliedAt) {
		return last
	}
	return b.appliedAt
}

// Note writes successes and the lag of the feed into the control document, at most every five seconds and only when
// something changed.
//
// It raises the heartbeat before it records a success, so that a database that goes back behind that success is
// refused. If the heartbeat does not commit, the success is recorded later. While the heartbeat's row is locked,
// successes are recorded without it: a lock must not look like an outage. The heartbeat is then tried once a minute.
func (b *Breaker) Note(ctx context.Context, lag FeedLag) {
	c, _ := b.shared.cached()
	now := b.o.Now()
	b.mu.Lock()
	applied, waited := b.appliedAt, now.Sub(b.notedAt) >= noteEvery
	success := waited && applied.Sub(c.AppliedBy(b.o.Build)) >= noteEvery
	due := success ||
		(lag.replaces(c.Feed) && lag.At.Sub(c.Feed.At) >= noteEvery && lag.Seconds != c.Feed.Seconds)
	if due {
		b.notedAt = now
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
		c.noteFeed(lag)
		return true
	})
}

// NoteMissed records what a tick of the recovery timer found that the feed did not bring, and gives it with the number
// of ticks. A tick without documents ends it.
func (b *Breaker) NoteMissed(ctx context.Context, m Missed) Missed {
	b.shared.change(ctx, func(c *Control) bool {
		was := c.Missed
		if m.Documents == 0 {
			c.Missed, m = Missed{}, Missed{}
			return was.Documents > 0
		}
		// an earlier tick committed the document at which the feed stops
		if m.Ticks = was.Ticks + 1; m.Code == "" && was.Code != "" {
			m.Sample, m.Code = was.Sample, was.Code
		}
		c.Missed = m
		return true
	})
	return m
}

// MayPoison reports whether the app may make another poison message in this hour.
func (b *Breaker) MayPoison(ctx context.Context) bool {
	c, _ := b.shared.get(ctx)
	return c.PoisonSince(b.o.Now()) < b.o.MaxPoisonPerHour
}

// TakePoison counts a poison message of this hour, and one without proof for this build; false when a limit is reached.
// A message whose mark failed because of a dependency is not counted again. Errors by kind: infrastructure, throttled,
// contention (the control document could not be changed: nothing is counted).
func (b *Breaker) TakePoison(ctx context.Context, folder string, proven bool) (taken bool, err error) {
	now := b.o.Now()
	hour := now.Truncate(time.Hour)
	b.mu.Lock()
	counted := b.poisonCounted[folder].Equal(hour)
	b.mu.Unlock()
	if counted {
		return true, nil
	}
	err = b.shared.command(ctx, func(c *Control) bool {
		poison, build := c.poisonIn(now), c.of(b.o.Build)
		taken = poison.Count < b.o.MaxPoisonPerHour && (proven || build.Unproven < maxUnproven)
		if !taken {
			return false
		}
		c.Poison = PoisonCount{Hour: poison.Hour, Count: poison.Count + 1}
		if !proven {
			build.Unproven++
			c.putFirst(build)
		}
		return true
	})
	if err != nil || !taken {
		return false, err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	maps.DeleteFunc(b.poisonCounted, func(_ string, at time.Time) bool { return !at.Equal(hour) })
	b.poisonCounted[folder] = hour
	return true, nil
}
