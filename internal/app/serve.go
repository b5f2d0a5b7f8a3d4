package app

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"runtime/debug"
	"strconv"
	"time"

	"github.com/rs/zerolog"

	"sqlwriter/internal/events"
	"sqlwriter/internal/timer"
)

// The exit codes of the handler process (docs/facts.md F22).
const (
	// ExitFailed makes the host start the process again. The host gives up at the third time in half an hour. It is
	// also the end of a process whose host is gone, where nobody reads it.
	ExitFailed = 1
	// ExitRestart makes the host start the process again without counting an error. It is the reply to SIGTERM.
	// A host that stays never restarts a process that exits with 0, and every later invocation fails. So this
	// program never exits with 0.
	ExitRestart = 200
)

const (
	// drainTimeout is how long a stopping process lets running invocations finish. The host waits up to 10 s for a
	// timer call and 30 s for an HTTP call, and then sends SIGKILL (docs/facts.md F23).
	drainTimeout = 8 * time.Second
	// parentPoll is the interval of looking for the parent process, and goneTimeout how long a process without one lets
	// running invocations finish: it is gone 5 s after its host, unless it was stopping already
	// (docs/adr/0032-a-handler-ends-with-its-host.md).
	parentPoll  = time.Second
	goneTimeout = 3 * time.Second
	// headerTimeout bounds the reading of a request's headers only. A bound for bodies and replies would cut off long
	// invocations (docs/facts.md F25); every invocation has its own deadline.
	headerTimeout = 10 * time.Second
	// gcPercent trades processor time for memory. A batch of the largest documents is a body of 100 MB and more;
	// with the default of 100 % the heap would grow to twice that.
	gcPercent = 50
)

// Options configure Main.
type Options struct {
	// Lookup returns a setting, as os.LookupEnv does.
	Lookup func(string) (string, bool)
	// Stdout and Stderr receive the log (package events).
	Stdout, Stderr io.Writer
	// Deadline bounds one invocation; 0 means handlers.DefaultDeadline.
	Deadline time.Duration
	// Parent returns the id of the parent process; nil means os.Getppid.
	Parent func() int
}

// Main runs the handler process until ctx ends (SIGTERM, SIGINT), the server fails or the host is gone, and returns the
// exit code. It listens before any slow step: the host tries to connect every 25 ms and gives up after 30 s
// (docs/facts.md F21).
func Main(ctx context.Context, o Options) int {
	debug.SetGCPercent(gcPercent)
	log := events.New(o.Stdout, o.Stderr)
	address, err := listenAddress(o.Lookup)
	if err != nil {
		events.For(ctx, log).Write(events.HandlerFailed, events.Fields{Reason: err.Error()})
		return ExitFailed
	}
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", address)
	if err != nil {
		events.For(ctx, log).Write(events.HandlerFailed,
			events.Fields{Reason: "cannot listen on the port that the host named: " + err.Error()})
		return ExitFailed
	}
	return serve(ctx, o, listener, log)
}

// listenAddress returns 127.0.0.1 and the port that the host named, by the new or the old name of the variable.
func listenAddress(get func(string) (string, bool)) (string, error) {
	const name, oldName = "FUNCTIONS_CUSTOMHANDLER_PORT", "FUNCTIONS_HTTPWORKER_PORT"
	value, _ := get(name)
	if value == "" {
		value, _ = get(oldName)
	}
	port, err := strconv.ParseUint(value, 10, 16)
	if err != nil {
		return "",
			fmt.Errorf(
				"%s: expected a port number, found %q: this program is started by the Functions host (make run starts everything here)",
				name, value)
	}
	return net.JoinHostPort("127.0.0.1", strconv.FormatUint(port, 10)), nil
}

// newServer makes the server. It bounds only the reading of headers.
func newServer(h http.Handler) *http.Server {
	return &http.Server{Handler: h, ReadHeaderTimeout: headerTimeout}
}

// serve runs the app on an open listener.
func serve(ctx context.Context, o Options, listener net.Listener, log zerolog.Logger) int {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	gone := parentGone(ctx, o.Parent)
	a := New(o.Lookup, log) //nolint:contextcheck // closing the clients has its own bound
	a.events(ctx).Write(events.HandlerStarted, events.Fields{Version: a.status.version})
	a.Start(context.WithoutCancel(ctx)) // running invocations need the dependencies until they are drained
	server := newServer(a.Handler(o.Deadline))
	failed := make(chan error, 1)
	go func() { failed <- server.Serve(listener) }()
	code, why, within := ExitRestart, "stopped on request", drainTimeout
	select {
	case err := <-failed:
		a.events(ctx).Write(events.HandlerFailed, events.Fields{Reason: "the server ended by itself: " + err.Error()})
		a.Close()
		return ExitFailed
	case <-ctx.Done():
	case <-gone:
		code, why, within = ExitFailed, "the host is gone, so this process ends", goneTimeout
	}
	drainCtx, cancel := context.WithTimeout(context.WithoutCancel(ctx), within)
	defer cancel()
	err := server.Shutdown(drainCtx)
	if err != nil { // the host offers an invocation again that is cut off here
		err = errors.Join(err, server.Close())
	}
	closed := make(chan struct{})
	go func() {
		defer close(closed)
		a.Close()
	}()
	select { // what hangs in a dependency does not keep the process
	case <-closed:
	case <-drainCtx.Done():
	}
	a.events(ctx).Write(events.HandlerEnded, events.Fields{Reason: why, Drained: err == nil})
	return code
}

// parentGone returns a channel that is closed when the parent process is another one than now: the host was killed, and
// the system gave its child to another process (docs/facts.md F104). It is never closed on Windows, where the id of the
// parent stays, and where the host ends its children by a job object (docs/facts.md F105).
func parentGone(ctx context.Context, parent func() int) <-chan struct{} {
	if parent == nil {
		parent = os.Getppid
	}
	first, gone := parent(), make(chan struct{})
	go func() {
		for timer.Wait(ctx, parentPoll) == nil {
			if parent() != first {
				close(gone)
				return
			}
		}
	}()
	return gone
}
