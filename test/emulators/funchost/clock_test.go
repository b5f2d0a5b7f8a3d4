package funchost

import (
	"context"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// fakeClock moves only when told to.
type fakeClock struct {
	mu     sync.Mutex
	now    time.Time
	sleeps []*sleep
}

type sleep struct {
	why   string
	d     time.Duration
	until time.Time
	over  chan struct{}
}

func newFakeClock() *fakeClock {
	return &fakeClock{now: time.Date(2026, 3, 4, 5, 6, 7, 800_000_000, time.UTC)}
}

func (c *fakeClock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *fakeClock) Sleep(ctx context.Context, d time.Duration, why string) bool {
	c.mu.Lock()
	s := &sleep{why, d, c.now.Add(d), make(chan struct{})}
	if d <= 0 {
		close(s.over)
	}
	c.sleeps = append(c.sleeps, s)
	c.mu.Unlock()
	defer func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.sleeps = slices.DeleteFunc(c.sleeps, func(other *sleep) bool { return other == s })
	}()
	select {
	case <-s.over:
		return true
	case <-ctx.Done():
		return false
	}
}

// advance moves time and ends the sleeps that are over.
func (c *fakeClock) advance(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
	for _, s := range c.sleeps {
		if !s.until.After(c.now) {
			select {
			case <-s.over:
			default:
				close(s.over)
			}
		}
	}
}

// asleep returns the lengths of the current sleeps of a kind.
func (c *fakeClock) asleep(why string) []time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	var out []time.Duration
	for _, s := range c.sleeps {
		select {
		case <-s.over:
		default:
			if s.why == why {
				out = append(out, s.d)
			}
		}
	}
	return out
}

// wait returns once n sleeps of a kind are going on, and their lengths.
func (c *fakeClock) wait(t *testing.T, why string, n int) []time.Duration {
	t.Helper()
	require.Eventually(t, func() bool { return len(c.asleep(why)) >= n }, patience, time.Millisecond, "sleep %q", why)
	return c.asleep(why)
}
