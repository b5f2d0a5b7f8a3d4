package funchost

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// cosmosFn is CommitResults with some more binding properties and something behind the bindings.
func cosmosFn(properties, rest string) string { return fmt.Sprintf(cosmosFunction, properties, rest) }

const (
	retryForever = `,"retry":{"strategy":"fixedDelay","maxRetryCount":-1,"delayInterval":"00:00:10"}`
	retryTwice   = `,"retry":{"strategy":"fixedDelay","maxRetryCount":2,"delayInterval":"00:00:10"}`
)

func TestCosmosTriggerCutsBatchesAtMaxItemsPerInvocation(t *testing.T) {
	store := newFakeCosmos(1)
	store.put(0, `1`, `2`, `3`, `4`, `5`)
	b := start(t, newRoot(t).function("F", cosmosFn(`,"maxItemsPerInvocation":2`, "")), store.uses())
	b.awaitN(Checkpoint, 3)
	var got []string
	for _, c := range b.control.seen() {
		got = append(got, c.documents(t))
	}
	require.Equal(t, []string{"[1,2]", "[3,4]", "[5]"}, got)
}

func TestCosmosTriggerPollsAfterFeedPollDelay(t *testing.T) {
	for property, want := range map[string]time.Duration{"": 5 * time.Second, `,"feedPollDelay":1000`: time.Second} {
		store := newFakeCosmos(1)
		b := start(t, newRoot(t).function("F", cosmosFn(property, "")), store.uses())
		require.Equal(t, []time.Duration{want}, b.clock.wait(t, waitFeedPoll, 1))
		store.put(0, `1`)
		b.clock.advance(want - 1)
		require.Empty(t, b.control.seen())
		b.clock.advance(1)
		b.await(Checkpoint)
	}
}

func TestRetryKeepsTheBatchInMemoryAndCheckpointsWhenExhausted(t *testing.T) {
	store := newFakeCosmos(1)
	store.put(0, `1`)
	c := newControl(t)
	c.inOrder(failure(500), failure(500), failure(500), ok)
	b := prepare(t, newRoot(t).function("F", cosmosFn("", retryTwice)), c, newFakeClock(), store.uses())
	b.run()
	for i := range 2 {
		require.Equal(t, []time.Duration{10 * time.Second}, b.clock.wait(t, waitRetry, 1))
		require.Nil(t, store.lease(t, 0).ContinuationToken, "not checkpointed while it is retried")
		store.put(0, `"later"`) // must not come into the batch
		b.clock.advance(10 * time.Second)
		c.wait(t, i+2)
	}
	b.await(RetriesExhausted)
	require.Equal(t, 1, b.await(Checkpoint).Items)
	calls := c.wait(t, 4)
	for i, attempt := range calls[:3] {
		require.Equal(t, "[1]", attempt.documents(t))
		require.Equal(t, float64(i), attempt.metadata(t)["RetryContext"].(map[string]any)["RetryCount"])
	}
	require.Equal(t, `["later","later"]`, calls[3].documents(t))
	require.Equal(t, 0.0, calls[3].metadata(t)["RetryContext"].(map[string]any)["RetryCount"],
		"a new batch counts from 0")
}

func TestRetryWithoutEndBlocksItsRangeOnly(t *testing.T) {
	store := newFakeCosmos(2)
	store.put(0, `"poison"`)
	c := newControl(t)
	c.say(func(_ context.Context, _ int, seen call) answer {
		if seen.documents(t) == `["poison"]` {
			return failure(500)
		}
		return ok
	})
	b := prepare(t, newRoot(t).function("F", cosmosFn("", retryForever)), c, newFakeClock(), store.uses())
	b.run()
	for i := range 30 {
		b.clock.wait(t, waitRetry, 1)
		b.clock.advance(10 * time.Second)
		require.Equal(t, i+1, b.awaitN(Retry, i+1).RetryCount)
	}
	store.put(1, `"good"`)
	b.clock.wait(t, waitFeedPoll, 1)
	b.clock.advance(10 * time.Second)
	require.Equal(t, "1", b.await(Checkpoint).Range)
	require.Nil(t, store.lease(t, 0).ContinuationToken)
	require.Zero(t, b.count(RetriesExhausted))
}

func TestStoppedHostDoesNotCheckpointAndGivesItsLeaseBack(t *testing.T) {
	store := newFakeCosmos(1)
	store.put(0, `1`)
	c := newControl(t)
	c.inOrder(failure(500))
	b := prepare(t, newRoot(t).function("F", cosmosFn("", retryForever)), c, newFakeClock(), store.uses())
	b.run()
	b.clock.wait(t, waitRetry, 1)
	require.NotEmpty(t, store.lease(t, 0).Owner)
	require.NoError(t, b.Stop())
	require.Nil(t, store.lease(t, 0).ContinuationToken)
	require.Empty(t, store.lease(t, 0).Owner)
	b.await(LeaseReleased)

	next := start(t, newRoot(t).function("F", cosmosFn("", retryForever)), store.uses())
	next.await(Checkpoint)
	require.Equal(t, "[1]", next.control.seen()[0].documents(t), "delivered again")
}

func TestFeedErrorGivesTheLeaseBackUntilTheNextAcquireInterval(t *testing.T) {
	store := newFakeCosmos(1)
	store.fail = errors.New("the service is away")
	b := start(t, newRoot(t).function("F", cosmosFn("", "")), store.uses())
	require.ErrorContains(t, b.await(FeedError).Err, "the service is away")
	b.await(LeaseReleased)
	store.put(0, `1`)
	require.Equal(t, []time.Duration{13 * time.Second}, b.clock.wait(t, waitLeaseAcquire, 1))
	b.clock.advance(13 * time.Second)
	b.awaitN(LeaseAcquired, 2)
	b.await(Checkpoint)
}

func TestListenerThatCannotStartIsTriedAgain(t *testing.T) {
	store := newFakeCosmos(1)
	store.put(0, `1`)
	tries := 0
	b := start(t, newRoot(t).function("F", cosmosFn("", "")), func(h *Host, _ *Options) {
		if h != nil {
			h.openCosmos = func(context.Context, *cosmosTrigger) (changeSource, leaseStore, func(), error) {
				if tries++; tries < 3 {
					return nil, nil, nil, errors.New("the lease container does not exist")
				}
				return store, store, func() {}, nil
			}
		}
	})
	require.Equal(t, []time.Duration{2 * time.Second}, b.clock.wait(t, waitListener, 1))
	require.ErrorContains(t, b.await(ListenerFailed).Err, "does not exist")
	b.clock.advance(2 * time.Second)
	b.awaitN(ListenerFailed, 2)
	b.clock.wait(t, waitListener, 1)
	b.clock.advance(time.Minute)
	b.await(Checkpoint)
}
