package funchost

import (
	"context"
	"encoding/json"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// message decodes the layers of a Service Bus message.
func (c call) message(t *testing.T) string {
	t.Helper()
	var body struct{ Data map[string]string }
	require.NoError(t, json.Unmarshal(c.Body, &body))
	var inner string
	require.NoError(t, json.Unmarshal([]byte(body.Data["message"]), &inner))
	return inner
}

// gate delays the answers to calls until a test releases them, and counts the waiting ones.
type gate struct {
	mu      sync.Mutex
	inside  int
	most    int
	release chan answer
}

func (c *control) gate() *gate {
	g := &gate{release: make(chan answer)}
	c.say(func(ctx context.Context, _ int, _ call) answer {
		g.mu.Lock()
		g.inside++
		g.most = max(g.most, g.inside)
		g.mu.Unlock()
		defer func() {
			g.mu.Lock()
			g.inside--
			g.mu.Unlock()
		}()
		select {
		case a := <-g.release:
			return a
		case <-ctx.Done():
			return failure(500)
		}
	})
	return g
}

func (g *gate) wait(t *testing.T, n int) {
	t.Helper()
	require.Eventually(t, func() bool {
		g.mu.Lock()
		defer g.mu.Unlock()
		return g.inside == n
	}, patience, time.Millisecond, "%d calls inside", n)
}

func TestAtMostMaxConcurrentCallsRun(t *testing.T) {
	bus := newFakeBus()
	for i := range 9 {
		bus.put(strconv.Itoa(i), "x")
	}
	c := newControl(t)
	g := c.gate()
	b := prepare(t,
		newRoot(t).file("host.json", busHost(`{"maxConcurrentCalls":3,"prefetchCount":2}`)).function("F",
			busBinding("")), c, newFakeClock(), bus.uses())
	b.run()
	g.wait(t, 3)
	waiting := func() int {
		bus.mu.Lock()
		defer bus.mu.Unlock()
		return len(bus.waiting)
	}
	require.Eventually(t, func() bool { return waiting() == 4 }, patience, time.Millisecond, "3 in work, 2 prefetched")
	require.Never(t, func() bool { return waiting() < 4 || len(c.seen()) > 3 }, 50*time.Millisecond, 5*time.Millisecond)
	for range 9 {
		g.release <- ok
	}
	b.awaitN(MessageCompleted, 9)
	require.Equal(t, 3, g.most)
}

func TestTheLockIsRenewedNoLongerThanMaxAutoLockRenewalDuration(t *testing.T) {
	for limit, renewals := range map[string]int{"00:00:00": 0, "00:01:39": 1, "00:01:40": 2} {
		bus := newFakeBus()
		bus.put("a", "x")
		c := newControl(t)
		g := c.gate()
		b := prepare(t,
			newRoot(t).file("host.json", busHost(`{"maxAutoLockRenewalDuration":"`+limit+`"}`)).function("F",
				busBinding("")), c, newFakeClock(), bus.uses())
		b.run()
		g.wait(t, 1)
		for i := range renewals {
			b.clock.wait(t, waitLock, 1)
			b.clock.advance(50 * time.Second)
			b.awaitN(MessageLockRenewed, i+1)
		}
		require.Never(t, func() bool {
			return len(b.clock.asleep(waitLock)) > 0
		}, 30*time.Millisecond, 5*time.Millisecond)
		g.release <- ok
		b.await(MessageCompleted)
	}
}

// A link that ends now and then, as idle ones do, is not a failure.
func TestALinkThatEndsIsFollowedByTheNext(t *testing.T) {
	bus := newFakeBus()
	bus.ends = 2
	bus.put("a", "x")
	b := start(t, newRoot(t).function("F", busBinding("")), bus.uses())
	b.await(MessageCompleted)
	require.Zero(t, b.count(ReceiveFailed))
	require.Equal(t, 1, bus.opened)
}
