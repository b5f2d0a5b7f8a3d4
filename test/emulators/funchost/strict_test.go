package funchost

import (
	"context"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// A handler does not learn that the host is stopping: a running POST is not cancelled (docs/facts.md F23), it may still
// succeed, and its batch comes again all the same.
func TestStopDoesNotCancelARunningInvocation(t *testing.T) {
	store := newFakeCosmos(1)
	store.put(0, `1`)
	c := newControl(t)
	release := make(chan struct{})
	c.say(func(ctx context.Context, _ int, _ call) answer {
		select {
		case <-release:
			return ok
		case <-ctx.Done():
			return failure(http.StatusServiceUnavailable)
		}
	})
	b := prepare(t, newRoot(t).function("F", cosmosFn("", "")), c, newFakeClock(),
		store.uses(), waitsToStop())
	b.run()
	c.wait(t, 1)
	stopped := make(chan error, 1)
	go func() { stopped <- b.Stop() }()
	<-b.listening.Done()
	require.Never(t, func() bool { return b.count(InvocationFailed) > 0 }, 100*time.Millisecond, 5*time.Millisecond)
	close(release)
	require.NoError(t, <-stopped)
	require.Equal(t, 1, b.count(InvocationSuccess))
	require.Zero(t, b.count(Checkpoint))
	require.Nil(t, store.lease(t, 0).ContinuationToken)
}

func TestADisabledFunctionDoesNotListen(t *testing.T) {
	store := newFakeCosmos(1)
	store.put(0, `1`)
	b := start(t,
		newRoot(t).function("F", cosmosFn("", "")).function("T", manual("")).function("H", httpFunction),
		store.uses(),
		with(func(o *Options) {
			o.Settings["AzureWebJobs.F.Disabled"] = "true"
			o.Settings["AzureWebJobs.T.Disabled"] = "true"
		}))
	require.NoError(t, b.Stop()) // waits for every listener there is
	require.Zero(t, b.count(ListenerStarted))
	require.Zero(t, b.count(LeaseCreated))
	require.Empty(t, b.control.seen())
}

// The handler gets the same port in every run: a client may keep its address.
func TestHandlerKeepsItsPortThroughRestarts(t *testing.T) {
	b := start(t, newRoot(t).function("F", manual("")), with(masterKey))
	before := b.HandlerURL()
	b.control.inOrder(answer{exit: 1}, ok)
	b.fire("F")
	b.awaitN(HandlerReady, 2)
	require.Equal(t, before, b.HandlerURL())
	b.fire("F")
	b.await(InvocationSuccess)
}

// The caller of an HTTP function may hang up: what it started goes on.
func TestACallerThatHangsUpEndsNothing(t *testing.T) {
	b := start(t, newRoot(t).function("F", web(anyone)))
	g := b.control.gate()
	ctx, hangUp := context.WithCancel(t.Context())
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+b.Address()+"/api/F", nil)
	require.NoError(t, err)
	gone := make(chan error, 1)
	go func() {
		response, err := http.DefaultClient.Do(request)
		if err == nil {
			_ = response.Body.Close()
		}
		gone <- err
	}()
	g.wait(t, 1)
	hangUp()
	require.ErrorIs(t, <-gone, context.Canceled)
	require.Never(t, func() bool { return b.count(InvocationFailed) > 0 }, 100*time.Millisecond, 5*time.Millisecond)
	g.release <- ok
	b.await(InvocationSuccess)
}
