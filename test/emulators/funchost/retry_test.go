package funchost

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestExponentialBackoff(t *testing.T) {
	p := newBackoff(5*time.Second, time.Minute)
	p.factor = func() float64 { return 1 }
	var got []time.Duration
	for range 7 {
		got = append(got, p.next())
	}
	// RandomizedExponentialBackoffStrategy: the minimum, then minimum + 2^n * minimum, then the maximum for good.
	require.Equal(t, []time.Duration{
		5 * time.Second, 10 * time.Second, 15 * time.Second, 25 * time.Second, 45 * time.Second,
		time.Minute, time.Minute,
	}, got)
}

func TestStopEndsARunningRetryAndAHeldInvocation(t *testing.T) {
	b := start(t,
		newRoot(t).function("F", manual("")).function("G",
			manual(`,"retry":{"strategy":"fixedDelay","maxRetryCount":-1,"delayInterval":"00:00:01"}`)),
		with(masterKey), with(func(o *Options) { o.Tune.StopTimeout = time.Millisecond }))
	b.control.say(func(ctx context.Context, n int, c call) answer {
		if c.Function == "G" {
			return failure(500)
		}
		return hold(ctx, n, c)
	})
	b.fire("F")
	b.fire("G")
	b.control.wait(t, 2)
	b.clock.wait(t, waitRetry, 1)
	require.NoError(t, b.Stop())
	require.NoError(t, b.Wait())
}
