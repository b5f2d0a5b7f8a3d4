package funchost

import (
	"net/http"
	"os"
	"slices"
	"strings"
	"syscall"
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

func TestHandlerEnvironment(t *testing.T) {
	b := start(t, newRoot(t).function("F", httpFunction),
		with(func(o *Options) { o.Settings["SOME_SETTING"] = "some value" }))
	raw, err := os.ReadFile("/proc/" + itoa(b.HandlerPid()) + "/environ")
	if err != nil {
		t.Skip("no /proc here")
	}
	env := map[string]string{}
	for _, line := range strings.Split(string(raw), "\x00") {
		name, value, _ := strings.Cut(line, "=")
		env[name] = value
	}
	port := strings.TrimPrefix(b.HandlerURL(), "http://127.0.0.1:")
	require.Equal(t, port, env["FUNCTIONS_CUSTOMHANDLER_PORT"])
	require.Equal(t, port, env["FUNCTIONS_HTTPWORKER_PORT"])
	require.NotEmpty(t, env["FUNCTIONS_CUSTOMHANDLER_WORKER_ID"])
	require.Equal(t, env["FUNCTIONS_CUSTOMHANDLER_WORKER_ID"], env["FUNCTIONS_HTTPWORKER_ID"])
	require.Equal(t, b.root, env["FUNCTIONS_APP_ROOT_PATH"])
	require.Equal(t, "some value", env["SOME_SETTING"])
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

func TestHandlerIsPingedNowAndThen(t *testing.T) {
	b := start(t, newRoot(t).function("F", httpFunction))
	require.Eventually(t, func() bool {
		return len(b.lines("pinged")) > 0
	}, patience, time.Millisecond, "until it is ready")
	for range 2 {
		before := len(b.lines("pinged"))
		require.Equal(t, []time.Duration{10 * time.Second}, b.clock.wait(t, waitPing, 1))
		b.clock.advance(10 * time.Second)
		require.Eventually(t, func() bool { return len(b.lines("pinged")) > before }, patience, time.Millisecond)
	}
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

func TestHandlerErrorsMoreThanThirtyMinutesApartDoNotAddUp(t *testing.T) {
	b := start(t, newRoot(t).function("F", manual("")), with(masterKey))
	b.control.inOrder(answer{exit: 3})
	for i := range 5 {
		b.fire("F")
		b.awaitN(HandlerReady, i+2)
		b.clock.advance(30*time.Minute + time.Second)
	}
	require.Zero(t, b.count(HandlerGaveUp))
}

func TestHandlerExit200IsAWantedRestartAndNotCounted(t *testing.T) {
	b := start(t, newRoot(t).function("F", manual("")), with(masterKey))
	b.control.inOrder(answer{exit: 200})
	for i := range 5 {
		b.fire("F")
		b.awaitN(HandlerReady, i+2)
	}
	require.Zero(t, b.count(HandlerGaveUp))
	require.Equal(t, 200, b.await(HandlerExited).ExitCode)
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

func TestAStoppedHostMayLeaveTheHandlerBehind(t *testing.T) {
	b := start(t, newRoot(t).function("F", httpFunction), with(func(o *Options) { o.LeaveHandler = true }))
	handler, err := os.FindProcess(b.HandlerPid())
	require.NoError(t, err)
	exited := b.dispatcher.current().exited
	t.Cleanup(func() {
		_ = handler.Kill()
		<-exited
	})
	require.NoError(t, b.Stop())
	require.Zero(t, b.count(HandlerKilled)+b.count(HandlerExited))
	require.NoError(t, handler.Signal(syscall.Signal(0)), "it is there")
	response, err := http.Get(b.HandlerURL()) //nolint:noctx // a test
	require.NoError(t, err, "and still answers")
	require.NoError(t, response.Body.Close())
	http.DefaultClient.CloseIdleConnections()
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
		"204":                        {status: 204},
		"empty 200":                  {status: 200},
		"empty with content type":    {contentType: "application/json"},
		"null":                       {contentType: "application/json", body: "null"},
		"white space":                {contentType: "application/json", body: " \n"},
		"null with another charset":  {contentType: "text/json; charset=utf-8", body: " null "},
		"empty with the wrong type":  {contentType: "text/plain"},
		"202 accepted with no reply": {status: 202},
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

func TestReplyRules(t *testing.T) {
	json := "application/json"
	for name, c := range map[string]struct {
		answer answer
		reason Reason // "" = success
	}{
		"an empty object":        {answer{contentType: json, body: "{}"}, ""},
		"text/json":              {answer{contentType: "text/json", body: "{}"}, ""},
		"a charset":              {answer{contentType: "application/json; charset=utf-8", body: "{}"}, ""},
		"201":                    {answer{status: 201, contentType: json, body: "{}"}, ""},
		"299":                    {answer{status: 299, contentType: json, body: "{}"}, ""},
		"unknown members":        {answer{contentType: json, body: `{"Whatever":1,"Outputs":null}`}, ""},
		"text behind the object": {answer{contentType: json, body: `{} trailing`}, ""},
		"no content type":        {answer{body: "{}"}, ReasonContentType},
		"sniffed by Go's server": {
			answer{contentType: "text/plain; charset=utf-8", body: "{}"}, ReasonContentType,
		},
		"problem+json": {
			answer{contentType: "application/problem+json", body: "{}"}, ReasonContentType,
		},
		"a list":                       {answer{contentType: json, body: "[]"}, ReasonReply},
		"a text":                       {answer{contentType: json, body: `"ok"`}, ReasonReply},
		"half an object":               {answer{contentType: json, body: `{"Outputs":`}, ReasonReply},
		"not JSON":                     {answer{contentType: json, body: `OK`}, ReasonReply},
		"Logs that are no list":        {answer{contentType: json, body: `{"Logs":"x"}`}, ReasonReply},
		"Logs with an object":          {answer{contentType: json, body: `{"Logs":[{}]}`}, ReasonReply},
		"500 even with a good content": {answer{status: 500, contentType: json, body: "{}"}, ReasonStatus},
		"404":                          {answer{status: 404, contentType: json, body: "{}"}, ReasonStatus},
	} {
		t.Run(name, func(t *testing.T) {
			b := start(t, newRoot(t).function("F", manual("")), with(masterKey))
			b.control.inOrder(c.answer)
			b.fire("F")
			if c.reason == "" {
				b.await(InvocationSuccess)
				require.Equal(t, 1, b.count(InvocationStarted))
				require.Zero(t, b.count(InvocationFailed))
				return
			}
			failed := invocationError(t, b.await(InvocationFailed))
			require.Equal(t, c.reason, failed.Reason)
			if c.reason == ReasonStatus {
				require.Equal(t, c.answer.status, failed.Status)
			}
			require.Equal(t, 1, b.count(InvocationStarted))
			require.Zero(t, b.count(InvocationSuccess))
			require.Zero(t, b.count(HandlerKilled), "a failed invocation costs only itself")
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
