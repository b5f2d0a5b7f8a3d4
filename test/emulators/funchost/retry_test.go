package funchost

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestRetryContextAndFixedDelay(t *testing.T) {
	b := start(t,
		newRoot(t).function("F",
			manual(`,"retry":{"strategy":"fixedDelay","maxRetryCount":2,"delayInterval":"00:00:10"}`)), with(masterKey))
	b.control.inOrder(failure(500))
	b.fire("F")
	for i := range 2 {
		require.Equal(t, []time.Duration{10 * time.Second}, b.clock.wait(t, waitRetry, 1))
		require.Equal(t, i+1, b.awaitN(Retry, i+1).RetryCount)
		b.clock.advance(10*time.Second - 1)
		require.Len(t, b.control.seen(), i+1, "not a moment too early")
		b.clock.advance(1)
		b.control.wait(t, i+2)
	}
	require.Equal(t, 2, b.await(RetriesExhausted).RetryCount)
	calls := b.control.seen()
	require.Len(t, calls, 3)
	ids := map[string]bool{}
	for i, c := range calls {
		retry, is := c.metadata(t)["RetryContext"].(map[string]any)
		require.True(t, is, "present from the first attempt")
		require.Equal(t, float64(i), retry["RetryCount"])
		require.Equal(t, 2.0, retry["MaxRetryCount"])
		require.Equal(t, i == 0, retry["Exception"] == nil)
		ids[c.Header.Get("X-Azure-Functions-InvocationId")] = true
	}
	require.Len(t, ids, 1, "all attempts carry one invocation id")
	require.Equal(t, FunctionStats{Started: 3, Failed: 3, Retries: 2}, b.Stats()["F"])
}

func TestRetryEndsWithTheFirstSuccess(t *testing.T) {
	b := start(t,
		newRoot(t).function("F",
			manual(`,"retry":{"strategy":"fixedDelay","maxRetryCount":-1,"delayInterval":"00:00:01"}`)),
		with(masterKey))
	b.control.inOrder(failure(500), failure(503), ok)
	b.fire("F")
	for range 2 {
		b.clock.wait(t, waitRetry, 1)
		b.clock.advance(time.Second)
	}
	require.Equal(t, 2, b.await(InvocationSuccess).RetryCount)
	require.Equal(t, -1.0, b.control.seen()[2].metadata(t)["RetryContext"].(map[string]any)["MaxRetryCount"])
}

func TestExponentialBackoff(t *testing.T) {
	p := newBackoff(retryPolicy{exponential: true, minimum: 5 * time.Second, maximum: time.Minute})
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
