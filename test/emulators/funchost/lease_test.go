package funchost

import (
	"context"
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestLeasesAreCreatedOncePerRange(t *testing.T) {
	store := newFakeCosmos(2)
	b := start(t, newRoot(t).function("F", cosmosFn("", "")), store.uses())
	b.awaitN(LeaseAcquired, 2)
	require.Equal(t, 2, b.count(LeaseCreated))
	for i, r := range store.in {
		l := store.lease(t, i)
		require.Equal(t, "p-account_db_docs.."+r.ID, l.ID)
		require.Equal(t, r.Min, l.FeedRange.Range.Min)
		require.Equal(t, r.Max, l.FeedRange.Range.Max)
		require.Equal(t, b.await(LeaseAcquired).Owner, l.Owner)
		require.Equal(t, b.clock.Now().UTC(), l.Timestamp)
		require.Nil(t, l.ContinuationToken)
	}
	require.NoError(t, b.Stop())
	next := start(t, newRoot(t).function("F", cosmosFn("", "")), store.uses())
	next.awaitN(LeaseAcquired, 2)
	require.Zero(t, next.count(LeaseCreated))
}

func TestTwoHostsWithOnePrefixSplitTheRanges(t *testing.T) {
	store, clock, c := newFakeCosmos(2), newFakeClock(), newControl(t)
	r := newRoot(t).function("F", cosmosFn("", ""))
	first := prepare(t, r, c, clock, store.uses())
	first.run()
	first.awaitN(LeaseAcquired, 2)
	second := prepare(t, r, c, clock, store.uses())
	second.run()
	second.await(LeaseAcquired) // stolen: nothing was free, and one had two
	// The first notices at the next renewal.
	clock.wait(t, waitLeaseRenew, 3)
	clock.advance(17 * time.Second)
	lost := first.await(LeaseLost)
	require.Equal(t, second.await(LeaseAcquired).Range, lost.Range)
	owners := []string{store.lease(t, 0).Owner, store.lease(t, 1).Owner}
	require.ElementsMatch(t, []string{first.await(LeaseAcquired).Owner, second.await(LeaseAcquired).Owner}, owners)

	store.put(0, `"a"`)
	store.put(1, `"b"`)
	require.Eventually(t, func() bool { // the order of the two is not known
		if len(clock.asleep(waitFeedPoll)) >= 2 {
			clock.advance(5 * time.Second)
		}
		return first.count(Checkpoint) > 0 && second.count(Checkpoint) > 0
	}, patience, 20*time.Millisecond)
	require.Len(t, c.seen(), 2, "each change is seen once")
}

func TestTwoPrefixesEachSeeEverything(t *testing.T) {
	store := newFakeCosmos(2)
	store.put(0, `"a"`)
	store.put(1, `"b"`)
	other := `{"bindings":[{"type":"cosmosDBTrigger","name":"documents","connection":"COSMOS","databaseName":"db","containerName":"docs",
		"leaseContainerPrefix":"%OTHER%","startFromBeginning":true}]}`
	b := start(t, newRoot(t).function("F", cosmosFn("", "")).function("G", other), store.uses(),
		with(func(o *Options) { o.Settings["OTHER"] = "q-" }))
	b.awaitN(Checkpoint, 4)
	got := map[string]int{}
	for _, c := range b.control.seen() {
		got[c.Function+c.documents(t)]++
	}
	require.Equal(t, map[string]int{`F["a"]`: 1, `F["b"]`: 1, `G["a"]`: 1, `G["b"]`: 1}, got)
}

func TestAnExpiredLeaseIsTakenOver(t *testing.T) {
	store, clock := newFakeCosmos(1), newFakeClock()
	store.lend(0, "a host that was killed", clock.Now())
	b := prepare(t, newRoot(t).function("F", cosmosFn("", "")), newControl(t), clock, store.uses())
	b.run()
	for range 4 { // 52 s: the owner may still live
		require.Equal(t, []time.Duration{13 * time.Second}, clock.wait(t, waitLeaseAcquire, 1))
		require.Zero(t, b.count(LeaseAcquired))
		clock.advance(13 * time.Second)
	}
	clock.wait(t, waitLeaseAcquire, 1)
	require.Equal(t, "a host that was killed", store.lease(t, 0).Owner)
	clock.advance(13 * time.Second) // 65 s
	b.await(LeaseAcquired)
	require.Equal(t, b.await(LeaseAcquired).Owner, store.lease(t, 0).Owner)
}

func TestALeaseIsRenewedWhileABatchRuns(t *testing.T) {
	store := newFakeCosmos(1)
	store.put(0, `1`)
	c := newControl(t)
	c.say(hold)
	b := prepare(t, newRoot(t).function("F", cosmosFn("", "")), c, newFakeClock(), store.uses(),
		with(func(o *Options) { o.Tune.StopTimeout = time.Millisecond }))
	b.run()
	c.wait(t, 1)
	for range 3 {
		require.Equal(t, []time.Duration{17 * time.Second}, b.clock.wait(t, waitLeaseRenew, 1))
		b.clock.advance(17 * time.Second)
		now := b.clock.Now()
		require.Eventually(t, func() bool { return store.lease(t, 0).Timestamp.Equal(now) }, patience, time.Millisecond)
	}
}

func TestALostLeaseStopsTheRangeWithoutACheckpoint(t *testing.T) {
	store := newFakeCosmos(1)
	store.put(0, `1`)
	c := newControl(t)
	release := make(chan struct{})
	c.say(func(ctx context.Context, _ int, _ call) answer {
		select {
		case <-release:
			return ok
		case <-ctx.Done(): // the test failed before it let go
			return failure(503)
		}
	})
	b := prepare(t, newRoot(t).function("F", cosmosFn("", "")), c, newFakeClock(), store.uses())
	b.run()
	c.wait(t, 1)
	store.rob(0, "another host")
	close(release)
	require.ErrorIs(t, b.await(LeaseLost).Err, errLeaseLost)
	require.Nil(t, store.lease(t, 0).ContinuationToken)
	require.Equal(t, "another host", store.lease(t, 0).Owner)
	require.Zero(t, b.count(Checkpoint))
	reads := store.readCount()
	b.clock.wait(t, waitLeaseAcquire, 1)
	require.Empty(t, b.clock.asleep(waitFeedPoll))
	require.Equal(t, reads, store.readCount(), "nothing more is read")
}

// As in the real extension, losing the lease does not end the retries of the batch in memory.
func TestALostLeaseDoesNotEndARunningRetry(t *testing.T) {
	store := newFakeCosmos(1)
	store.put(0, `1`)
	c := newControl(t)
	c.inOrder(failure(500), ok)
	b := prepare(t,
		newRoot(t).function("F",
			cosmosFn("",
				`,"retry":{"strategy":"fixedDelay","maxRetryCount":-1,"delayInterval":"00:01:00"}`)),
		c, newFakeClock(), store.uses())
	b.run()
	b.clock.wait(t, waitRetry, 1)
	store.rob(0, "another host")
	b.clock.wait(t, waitLeaseRenew, 1)
	b.clock.advance(17 * time.Second)
	b.await(LeaseLost)
	b.clock.advance(43 * time.Second)
	b.await(InvocationSuccess)
	b.clock.wait(t, waitLeaseAcquire, 1)
	require.Nil(t, store.lease(t, 0).ContinuationToken)
}

func TestCheckpointSurvivesARenewalInBetween(t *testing.T) {
	store := newFakeCosmos(1)
	m := &leaseManager{store: store, owner: "me", now: time.Now}
	require.NoError(t, store.create(t.Context(), lease{ID: "x"}))
	l, err := m.read(t.Context(), "x")
	require.NoError(t, err)
	l, err = m.acquire(t.Context(), l)
	require.NoError(t, err)
	require.NoError(t, m.renew(t.Context(), "x")) // changes the etag
	l, err = m.checkpoint(t.Context(), l, "7")
	require.NoError(t, err)
	require.Equal(t, "7", *l.ContinuationToken)
}

func TestAFreeLeaseHasTheOwnerNull(t *testing.T) {
	for owner, want := range map[string]string{"": `"Owner":null`, "me": `"Owner":"me"`} {
		l := newLease("p-", keyRange{ID: "0"}, nil, time.Now())
		l.Owner = owner
		text, err := json.Marshal(l)
		require.NoError(t, err)
		require.Contains(t, string(text), want)
		var back lease
		require.NoError(t, json.Unmarshal(text, &back))
		require.Equal(t, owner, back.Owner)
	}
}

func TestLeasesToTake(t *testing.T) {
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	l := func(id, owner string, age time.Duration) lease {
		return lease{ID: id, Owner: owner, Timestamp: now.Add(-age)}
	}
	for name, c := range map[string]struct {
		all  []lease
		want []string
	}{
		"none":                             {nil, nil},
		"all free: all are mine":           {[]lease{l("1", "", 0), l("2", "", 0)}, []string{"1", "2"}},
		"one free of two, one other owner": {[]lease{l("1", "b", 0), l("2", "", 0)}, []string{"2"}},
		"share reached":                    {[]lease{l("1", "b", 0), l("2", "me", 0), l("3", "", 0)}, []string{"3"}},
		"share exceeded": {
			[]lease{l("1", "b", 0), l("2", "me", 0), l("3", "me", 0), l("4", "", 0)}, nil,
		},
		"steal one from the rich":           {[]lease{l("1", "b", 0), l("2", "b", 0)}, []string{"1"}},
		"one lease, one owner: nothing":     {[]lease{l("1", "b", 0)}, nil},
		"expired":                           {[]lease{l("1", "b", time.Minute+1)}, []string{"1"}},
		"exactly as old as the limit":       {[]lease{l("1", "b", time.Minute)}, nil},
		"three of two others, one for each": {[]lease{l("1", "b", 0), l("2", "b", 0), l("3", "c", 0)}, []string{"1"}},
		"from the richer": {
			[]lease{l("1", "b", 0), l("2", "c", 0), l("3", "c", 0), l("4", "c", 0)}, []string{"2"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			var got []string
			for _, taken := range leasesToTake(c.all, "me", now, time.Minute) {
				got = append(got, taken.ID)
			}
			require.Equal(t, c.want, got)
		})
	}
}

func TestAHostWithTheSameInstanceTakesUpItsOldLeasesAtOnce(t *testing.T) {
	store, clock := newFakeCosmos(2), newFakeClock()
	for i, owner := range []string{"local", "somebody else"} {
		store.lend(i, owner, clock.Now())
	}
	b := prepare(t, newRoot(t).function("F", cosmosFn("", "")), newControl(t), clock, store.uses(),
		with(func(o *Options) { o.Instance = "local" }))
	b.run()
	require.Equal(t, "0", b.await(LeaseAcquired).Range)
	clock.wait(t, waitLeaseAcquire, 1)
	require.Equal(t, 1, b.count(LeaseAcquired))
}
