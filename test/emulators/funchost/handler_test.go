package funchost

import (
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rs/zerolog"
	"github.com/stretchr/testify/require"
)

// A timer that never ticks by itself makes a handy function to invoke by hand.
const manualFunction = `{"bindings":[{"type":"timerTrigger","name":"timer","schedule":"0 0 0 1 1 *","useMonitor":false}]%s}`

func manual(retry string) string { return strings.Replace(manualFunction, "%s", retry, 1) }

func masterKey(o *Options) { o.Keys.Master = "m" }

// fire invokes a function through the admin path.
func (b *bench) fire(name string) {
	b.t.Helper()
	code, _, _ := b.request(http.MethodPost, "/admin/functions/"+name+"?code=m", reader2(`{"input":""}`))
	require.Equal(b.t, http.StatusAccepted, code)
}

func invocationError(t *testing.T, e Event) *InvocationError {
	t.Helper()
	var failed *InvocationError
	require.ErrorAs(t, e.Err, &failed)
	return failed
}

// The machine's environment is the lowest layer, app settings lie over it, and what the host says itself over both.
func TestHandlerEnvironment(t *testing.T) {
	b := start(t, newRoot(t).function("F", httpFunction), with(func(o *Options) {
		o.Env = append(os.Environ(), "SOME_SETTING=of the machine", "ONLY_HERE=of the machine")
		o.Settings["SOME_SETTING"] = "of the app"
		o.Settings["FUNCTIONS_CUSTOMHANDLER_PORT"] = "1"
	}))
	raw, err := os.ReadFile("/proc/" + itoa(b.HandlerPid()) + "/environ")
	if err != nil {
		t.Skip("no /proc here")
	}
	env := map[string]string{}
	for line := range strings.SplitSeq(string(raw), "\x00") {
		name, value, _ := strings.Cut(line, "=")
		env[name] = value
	}
	port := strings.TrimPrefix(b.HandlerURL(), "http://127.0.0.1:")
	for name, want := range map[string]string{
		"FUNCTIONS_CUSTOMHANDLER_PORT": port, "FUNCTIONS_HTTPWORKER_PORT": port, "FUNCTIONS_APP_ROOT_PATH": b.root,
		"SOME_SETTING": "of the app", "ONLY_HERE": "of the machine",
	} {
		require.Equal(t, want, env[name], name)
	}
	require.NotEmpty(t, env["FUNCTIONS_CUSTOMHANDLER_WORKER_ID"])
	require.Equal(t, env["FUNCTIONS_CUSTOMHANDLER_WORKER_ID"], env["FUNCTIONS_HTTPWORKER_ID"])
	got, err := os.Readlink("/proc/" + itoa(b.HandlerPid()) + "/cwd")
	require.NoError(t, err)
	want, err := filepath.EvalSymlinks(b.root)
	require.NoError(t, err)
	require.Equal(t, want, got, "it runs in the script root")
}

func TestHandlerConsoleLevels(t *testing.T) {
	b := start(t, newRoot(t).function("F", httpFunction), with(func(o *Options) {
		o.Settings["HANDLER_STDERR"] = "all is fine|a WARNing of something"
	}))
	want := map[string]zerolog.Level{
		"handler says hello": zerolog.InfoLevel, "all is fine": zerolog.ErrorLevel,
		"a WARNing of something": zerolog.WarnLevel,
	}
	require.Eventually(t, func() bool { return len(b.lines("")) >= len(want) }, patience, time.Millisecond)
	for text, level := range want {
		require.Equal(t, []ConsoleLine{{level, text}}, b.lines(text))
	}
}

// gaveUp waits until the host ends because of its handler.
func (b *bench) gaveUp() {
	b.t.Helper()
	b.await(HostStopped)
	require.ErrorIs(b.t, b.Wait(), ErrHandlerGaveUp)
}

// lines returns the console lines with a text, all but "pinged" for "".
func (b *bench) lines(text string) []ConsoleLine {
	return slices.DeleteFunc(b.console(), func(line ConsoleLine) bool {
		return (text != "" || line.Text == "pinged") && line.Text != text
	})
}

func TestHandlerThatExitsNonZeroIsRestartedAndTheThirdErrorEndsTheHost(t *testing.T) {
	b := start(t, newRoot(t).function("F", manual("")), with(masterKey))
	b.control.inOrder(answer{exit: 1})
	first := b.HandlerPid()
	for i := range 2 {
		b.fire("F")
		require.Equal(t, 1, b.awaitN(HandlerExited, i+1).ExitCode)
		b.awaitN(HandlerRestarting, i+1)
		b.awaitN(HandlerReady, i+2)
		require.NotEqual(t, first, b.HandlerPid())
		b.clock.advance(29 * time.Minute) // each error counts from the one before it, not from the first
	}
	b.fire("F")
	b.gaveUp()
	require.Equal(t, 2, b.count(HandlerRestarting))
	require.Equal(t, 3, b.count(HandlerStarted))
	require.Equal(t, ReasonConnection, invocationError(t, b.await(InvocationFailed)).Reason)
}

// Errors more than thirty minutes apart do not add up; 200 is a wanted restart, and no error.
func TestRestartsThatAreNotCounted(t *testing.T) {
	for code, apart := range map[int]time.Duration{3: 30*time.Minute + time.Second, 200: 0} {
		b := start(t, newRoot(t).function("F", manual("")), with(masterKey))
		b.control.inOrder(answer{exit: code})
		for i := range 5 {
			b.fire("F")
			b.awaitN(HandlerReady, i+2)
			b.clock.advance(apart)
		}
		require.Zero(t, b.count(HandlerGaveUp))
		require.Equal(t, code, b.await(HandlerExited).ExitCode)
	}
}

func TestHandlerExit0IsNeverRestartedAndEveryInvocationFails(t *testing.T) {
	b := start(t, newRoot(t).function("F", manual("")), with(masterKey))
	b.control.inOrder(answer{exit: -1})
	b.fire("F")
	require.Zero(t, b.await(HandlerExited).ExitCode)
	b.awaitN(InvocationFailed, 1)
	for i := range 3 {
		b.fire("F")
		require.Equal(t, ReasonConnection, invocationError(t, b.awaitN(InvocationFailed, i+2)).Reason)
	}
	require.Zero(t, b.count(HandlerRestarting))
	require.Equal(t, 1, b.count(HandlerStarted))
	code, _, _ := b.request(http.MethodGet, "/", nil)
	require.Equal(t, http.StatusOK, code, "the host itself stays up")
}

func TestHandlerThatNeverListensIsAnErrorAfterTheInitializationTimeout(t *testing.T) {
	r := newRoot(t).function("F", manual("")).file("host.json",
		strings.Replace(hostFile, `"handler"`, `"sleep","arguments":["600"]`, 1))
	b := prepare(t, r, newControl(t), newFakeClock(),
		with(func(o *Options) { o.Tune.InitializationTimeout = 50 * time.Millisecond }))
	t.Cleanup(func() { _ = b.Stop() })
	require.NoError(t, b.Start(t.Context()))
	b.gaveUp()
	require.Equal(t, 3, b.count(HandlerStarted))
	require.Equal(t, 3, b.count(HandlerKilled))
}

func TestHandlerThatExitsBeforeItListens(t *testing.T) {
	for code, probed := range map[string]bool{"1": false, "0": true} {
		b := prepare(t, newRoot(t).function("F", manual("")), newControl(t), newFakeClock(), with(func(o *Options) {
			o.Settings["HANDLER_EXIT"] = code
			if probed { // else the exit alone must do
				o.Tune.InitializationTimeout = 50 * time.Millisecond
			}
		}))
		require.NoError(t, b.Start(t.Context()))
		b.gaveUp()
		require.Equal(t, 3, b.count(HandlerStarted))
		// The prober does not learn of an exit with 0: its time-out counts.
		require.Equal(t, probed, strings.Contains(b.await(HandlerRestarting).Text, "timed out"))
	}
}

func TestStopKillsTheHandlerWithoutAsking(t *testing.T) {
	b := start(t, newRoot(t).function("F", httpFunction))
	require.NoError(t, b.Stop())
	require.Equal(t, -1, b.await(HandlerExited).ExitCode, "a signal, not an exit")
	require.Equal(t, "the host stops", b.await(HandlerKilled).Text)
	require.Zero(t, b.count(HandlerRestarting))
}

func TestFunctionTimeoutOfOneInvocationKillsTheHandlerAndAllOthers(t *testing.T) {
	b := start(t, newRoot(t).function("F", manual("")).function("G", manual("")), with(masterKey))
	b.control.say(hold)
	b.fire("F")
	b.control.wait(t, 1)
	require.Equal(t, []time.Duration{5 * time.Minute}, b.clock.wait(t, waitTimeout, 1), "functionTimeout of host.json")
	b.clock.advance(4 * time.Minute)
	b.fire("G")
	b.control.wait(t, 2)
	first := b.HandlerPid()
	b.clock.advance(time.Minute)
	require.Equal(t, "F", b.await(InvocationTimeout).Function)
	b.await(HandlerKilled)
	b.awaitN(HandlerReady, 2)
	require.NotEqual(t, first, b.HandlerPid())
	b.awaitN(InvocationFailed, 2)
	reasons := map[string]Reason{}
	for _, e := range b.Events(0) {
		if e.Kind == InvocationFailed {
			reasons[e.Function] = invocationError(t, e).Reason
		}
	}
	require.Equal(t, map[string]Reason{"F": ReasonTimeout, "G": ReasonConnection}, reasons)
	require.Equal(t, 1, b.count(InvocationTimeout))
}

func TestFunctionTimeoutsAreNotCountedAsErrorsOfTheHandler(t *testing.T) {
	b := start(t, newRoot(t).function("F", manual("")), with(masterKey))
	b.control.say(hold)
	for i := range 4 {
		b.fire("F")
		b.clock.wait(t, waitTimeout, 1)
		b.clock.advance(5 * time.Minute)
		b.awaitN(InvocationTimeout, i+1)
		b.awaitN(HandlerReady, i+2)
	}
	require.Zero(t, b.count(HandlerGaveUp))
}

// Each reply that is "nothing" to the host leaves the invocation hanging until the timeout kills the handler.
func TestEmptyReplyHangsUntilFunctionTimeoutAndCostsTheHandler(t *testing.T) {
	for name, a := range map[string]answer{
		"204":                       {status: 204},
		"empty with the wrong type": {contentType: "text/plain"},
		"null with another charset": {contentType: "text/json; charset=utf-8", body: " null "},
	} {
		t.Run(name, func(t *testing.T) {
			b := start(t, newRoot(t).function("F", manual("")), with(masterKey))
			b.control.inOrder(a)
			b.fire("F")
			b.control.wait(t, 1)
			require.Equal(t, []time.Duration{5 * time.Minute}, b.clock.wait(t, waitTimeout, 1))
			b.clock.advance(5*time.Minute - time.Second)
			require.Zero(t, b.count(InvocationFailed)+b.count(InvocationSuccess))
			b.clock.advance(time.Second)
			require.Equal(t, ReasonTimeout, invocationError(t, b.await(InvocationFailed)).Reason)
			b.await(HandlerKilled)
			b.awaitN(HandlerReady, 2)
		})
	}
}

func TestLogsOfAReplyBecomeUserLines(t *testing.T) {
	b := start(t, newRoot(t).function("F", manual("")), with(masterKey))
	b.control.inOrder(answer{contentType: "application/json", body: `{"Logs":["one","two",3]}`})
	b.fire("F")
	done := b.await(InvocationStarted)
	require.Equal(t, "one", b.awaitN(UserLog, 1).Text)
	require.Equal(t, "two", b.awaitN(UserLog, 2).Text)
	last := b.awaitN(UserLog, 3)
	require.Equal(t, "3", last.Text)
	require.Equal(t, done.InvocationID, last.InvocationID)
}

func keysOf(m map[string]any) map[string]struct{} {
	out := map[string]struct{}{}
	for name := range m {
		out[name] = struct{}{}
	}
	return out
}
