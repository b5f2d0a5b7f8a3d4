package funchost

import (
	"context"
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// Stricter than the host, which puts the empty text in (NameResolverExtensions.cs refuses only what is not set at all):
// an empty name fails later and with less to go on, and an empty prefix would share another function's leases in
// silence.
func TestAnEmptySettingDoesNotResolve(t *testing.T) {
	for _, property := range []string{"databaseName", "containerName", "leaseContainerName", "leaseContainerPrefix"} {
		_, err := indexed(t, cosmosBinding(property, `"%EMPTY%"`), map[string]string{"EMPTY": ""})
		require.ErrorContains(t, err, "'"+property+"': '%EMPTY%' does not resolve to a value")
	}
}

// A variable of the developer's machine must not hide a setting that the deployment lacks.
func TestNamesAreResolvedInTheAppSettingsOnly(t *testing.T) {
	t.Setenv("ONLY_IN_THE_PROCESS", "docs")
	_, err := indexed(t, cosmosBinding("containerName", `"%ONLY_IN_THE_PROCESS%"`), nil)
	require.ErrorContains(t, err, "'containerName': '%ONLY_IN_THE_PROCESS%' does not resolve to a value")
}

func TestHandlerRunsInTheScriptRoot(t *testing.T) {
	b := start(t, newRoot(t).function("F", httpFunction))
	got, err := os.Readlink("/proc/" + itoa(b.HandlerPid()) + "/cwd")
	if err != nil {
		t.Skip("no /proc here")
	}
	want, err := filepath.EvalSymlinks(b.root)
	require.NoError(t, err)
	require.Equal(t, want, got)
}

// The machine's environment is the lowest layer, app settings lie over it, and what the host says itself over both.
func TestHandlerEnvironmentLayers(t *testing.T) {
	b := start(t, newRoot(t).function("F", httpFunction), with(func(o *Options) {
		o.Env = append(os.Environ(), "SOME_SETTING=of the machine", "ONLY_HERE=of the machine")
		o.Settings["SOME_SETTING"] = "of the app"
		o.Settings["FUNCTIONS_CUSTOMHANDLER_PORT"] = "1"
	}))
	raw, err := os.ReadFile("/proc/" + itoa(b.HandlerPid()) + "/environ")
	if err != nil {
		t.Skip("no /proc here")
	}
	env := strings.Split(string(raw), "\x00")
	require.Contains(t, env, "SOME_SETTING=of the app")
	require.NotContains(t, env, "SOME_SETTING=of the machine")
	require.Contains(t, env, "ONLY_HERE=of the machine")
	require.Contains(t, env, "FUNCTIONS_CUSTOMHANDLER_PORT="+strings.TrimPrefix(b.HandlerURL(), "http://127.0.0.1:"))
}

// A handler does not learn that the host is stopping: a running POST is not cancelled (docs/facts.md F23), it may still
// succeed, and its batch comes again all the same.
func TestStopDoesNotCancelARunningInvocation(t *testing.T) {
	store := newFakeCosmos(1)
	store.put(0, time.Time{}, `1`)
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
	b := prepare(t, newRoot(t).function("F", cosmosFn(fromBeginning, "")), c, newFakeClock(),
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

func TestARangeGivenBackIsTakenAgainWhileAnotherIsRead(t *testing.T) {
	store := newFakeCosmos(2)
	store.fail = errors.New("the service is away")
	b := start(t, newRoot(t).function("F", cosmosFn(fromBeginning, "")), store.uses())
	given := b.await(LeaseReleased).Range
	b.clock.wait(t, waitLeaseAcquire, 1)
	b.clock.advance(13 * time.Second)
	require.Equal(t, given, b.awaitN(LeaseAcquired, 3).Range)
}

func TestADisabledFunctionDoesNotListen(t *testing.T) {
	store := newFakeCosmos(1)
	store.put(0, time.Time{}, `1`)
	b := start(t,
		newRoot(t).function("F", cosmosFn(fromBeginning, "")).function("T", manual("")).function("H", httpFunction),
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

// The caller of an HTTP function may hang up: what it started goes on, retries too.
func TestACallerThatHangsUpEndsNothing(t *testing.T) {
	text := strings.Replace(web(anyone), `}]}`,
		`}],"retry":{"strategy":"fixedDelay","maxRetryCount":3,"delayInterval":"00:00:10"}}`, 1)
	b := start(t, newRoot(t).function("F", text))
	b.control.inOrder(failure(500), failure(500), ok)
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
	b.clock.wait(t, waitRetry, 1)
	hangUp()
	require.ErrorIs(t, <-gone, context.Canceled)
	for i := range 2 {
		require.Never(t, func() bool {
			return len(b.clock.asleep(waitRetry)) == 0
		}, 100*time.Millisecond, 5*time.Millisecond)
		b.clock.advance(10 * time.Second)
		b.control.wait(t, i+2)
		if i == 0 {
			b.clock.wait(t, waitRetry, 1)
		}
	}
	b.await(InvocationSuccess)
}
