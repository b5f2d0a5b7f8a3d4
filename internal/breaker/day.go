package breaker

import (
	"context"
	"slices"
	"time"
)

// What operators read of a day beside the transitions of the audit log, which is in the database that was down
// (docs/adr/0034-what-every-instance-sees.md).

// maxStops bounds Control.Stops.
const maxStops = 20

// Stop is a time in which the flow did not run as always: stopped, paused or ramping up after that.
type Stop struct {
	From time.Time `json:"from"`
	To   time.Time `json:"to"`
	// Code is that of the failure, CodePaused for a pause.
	Code string `json:"code,omitempty"`
}

// noteStop keeps a stop that has ended. A pause ends the stop before it: both have a beginning of their own.
func (c *Control) noteStop(was State, now time.Time) {
	if was.name() == Closed || c.Breaker.Since.Equal(was.Since) {
		return
	}
	c.Stops = append(slices.Clone(c.Stops), Stop{From: was.Since, To: now.UTC().Round(0), Code: was.Code})
	c.Stops = c.Stops[max(0, len(c.Stops)-maxStops):]
}

// StopsUntil are the latest stops, oldest first. One that goes on ends now.
func (c Control) StopsUntil(now time.Time) []Stop {
	if s := c.Breaker; s.name() != Closed && s.Since.Before(now) {
		return append(slices.Clone(c.Stops), Stop{From: s.Since, To: now, Code: s.Code})
	}
	return c.Stops
}

// StoppedIn is how long the flow did not run as always between two times, as far as the latest stops say it.
func (c Control) StoppedIn(from, to time.Time) (d time.Duration) {
	for _, s := range c.StopsUntil(to) {
		if s.From.Before(from) {
			s.From = from
		}
		if s.To.After(to) {
			s.To = to
		}
		d += max(0, s.To.Sub(s.From))
	}
	return d
}

// Committed counts documents that became committed. The count goes to the control document with the next write of success or a
// heartbeat, or with NoteCommitted.
func (b *Breaker) Committed(documents int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.committed += int64(documents)
}

// NoteCommitted writes a count that waits. Each instance calls it once a minute, because no other write may come, and before it ends.
// Without the control document the count waits on.
func (b *Breaker) NoteCommitted(ctx context.Context) {
	b.mu.Lock()
	waiting := b.committed
	b.mu.Unlock()
	if waiting == 0 {
		return
	}
	if _, available := b.shared.get(ctx); available {
		b.changeAndCount(ctx, func(*Control) bool { return true })
	}
}

// changeAndCount is shared.change, with the count of committed documents that waits.
func (b *Breaker) changeAndCount(ctx context.Context, fn func(*Control) bool) {
	b.mu.Lock()
	waiting := b.committed
	b.committed = 0
	b.mu.Unlock()
	changed := b.shared.change(ctx, func(c *Control) bool {
		if !fn(c) {
			return false
		}
		c.Committed += waiting
		return true
	})
	if _, available := b.shared.cached(); !changed || !available {
		b.Committed(int(waiting)) // what only this instance's copy has is lost with the next one
	}
}
