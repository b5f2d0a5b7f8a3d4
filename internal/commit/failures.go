package commit

import (
	"context"
	"sync"
	"time"

	"sqlwriter/internal/breaker"
	"sqlwriter/internal/events"
)

// The bounds of storing failures. They keep a loop of bad documents from filling the database, and a slow table from
// delaying the feed.
const (
	// mostStored is the most failures of one batch, and mostStoredPerHour of one process in a clock hour.
	mostStored        = 100
	mostStoredPerHour = 10_000
	// storeTimeout bounds the request, and storePause is how long none follows one that failed.
	storeTimeout = 2 * time.Second
	storePause   = time.Minute
)

// failureStore is the state of storeFailures.
type failureStore struct {
	mu sync.Mutex
	// hour is the clock hour that stored counts.
	hour   int64
	stored int
	// pausedUntil ends the pause after a failed request.
	pausedUntil time.Time
}

// take admits at most n more failures at a time.
func (f *failureStore) take(n int, now time.Time) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	if hour := now.Unix() / 3600; hour != f.hour {
		f.hour, f.stored = hour, 0
	}
	if now.Before(f.pausedUntil) {
		return 0
	}
	n = min(n, mostStored, mostStoredPerHour-f.stored)
	f.stored += n
	return n
}

func (f *failureStore) pause(until time.Time) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.pausedUntil = until
}

// storeFailures stores the own failures of a batch for reports, after their documents were recorded. An error changes
// nothing else, and the breaker does not learn of it. Nothing is sent unless the breaker is closed.
func (c *Commit) storeFailures(ctx context.Context, failures []DocumentResult) {
	if c.o.Failures == nil || len(failures) == 0 {
		return
	}
	n, event := 0, events.FailuresLeftOut
	var err error
	if view := c.breaker.Seen(); !view.CutOff && view.Control.Breaker.Flow() == breaker.Running {
		n = c.failures.take(len(failures), c.o.Now())
	}
	if n > 0 {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), storeTimeout)
		defer cancel()
		if err = c.o.Failures.Add(ctx, failures[:n]); err != nil {
			n, event = 0, events.FailuresNotStored
			c.failures.pause(c.o.Now().Add(storePause))
		}
	}
	if n < len(failures) {
		events.For(ctx, c.o.Log).Write(event, events.Fields{Documents: len(failures) - n}.Of(err))
	}
}
