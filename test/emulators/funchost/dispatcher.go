package funchost

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"strconv"
	"sync"
	"time"
)

// Restart rules (HttpFunctionInvocationDispatcher.cs, docs/facts.md F22).
const (
	maxHandlerErrors = 3
	errorWindow      = 30 * time.Minute
)

// ErrHandlerGaveUp is the error of Wait when the handler failed three times, each within thirty minutes of the one
// before.
var ErrHandlerGaveUp = errors.New("exceeded http worker restart retry count: shutting down the functions host")

// dispatcher keeps the handler process running and hands it invocations.
type dispatcher struct {
	host   *Host
	base   string // http://127.0.0.1:port
	port   string // the same for every run of the handler
	client *http.Client

	mu      sync.Mutex
	worker  *worker
	ready   chan struct{} // closed while the handler can be called
	isReady bool
	errors  []time.Time
	stopped bool
	tasks   sync.WaitGroup
}

func newDispatcher(ctx context.Context, h *Host) (*dispatcher, error) {
	port, err := freePort(ctx)
	if err != nil {
		return nil, err
	}
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 64, DisableCompression: true}}
	return &dispatcher{
		host: h, port: port, base: "http://127.0.0.1:" + port, ready: make(chan struct{}), client: client,
	}, nil
}

// freePort finds an unused port. The host takes one that the system gives (WorkerUtilities.GetUnusedTcpPort);
// that one may be given to any outgoing connection again while the handler is not listening, at its start or in a
// restart, so here it comes from below the range that systems hand out.
func freePort(ctx context.Context) (string, error) {
	const first, last, tries = 15_000, 32_000, 100
	var config net.ListenConfig
	var err error
	for range tries {
		port := strconv.Itoa(first + rand.IntN(last-first))
		var listener net.Listener
		if listener, err = config.Listen(ctx, "tcp", "127.0.0.1:"+port); err == nil {
			return port, listener.Close()
		}
	}
	return "", fmt.Errorf("find a port for the handler: %w", err)
}

// start runs the handler and watches it. ctx ends with the host.
func (d *dispatcher) start(ctx context.Context) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.startLocked(ctx)
}

func (d *dispatcher) startLocked(ctx context.Context) error {
	if d.stopped {
		return nil
	}
	w, err := startWorker(d.host, d.port)
	if err != nil {
		return err
	}
	d.worker = w
	d.host.event(Event{Kind: HandlerStarted, Pid: w.cmd.Process.Pid})
	d.tasks.Go(func() { d.watchReady(ctx, w) })
	d.tasks.Go(func() { d.watchExit(ctx, w) })
	return nil
}

func (d *dispatcher) watchReady(ctx context.Context, w *worker) {
	err := d.waitReady(ctx, w)
	if ctx.Err() != nil {
		return
	}
	if err != nil {
		d.failed(ctx, w, err)
		return
	}
	d.mu.Lock()
	if d.worker == w && !w.killed && !gone(w) && !d.stopped {
		d.isReady = true
		close(d.ready)
		d.host.event(Event{Kind: HandlerReady, Pid: w.cmd.Process.Pid})
	}
	d.mu.Unlock()
}

func gone(w *worker) bool {
	select {
	case <-w.exited:
		return true
	default:
		return false
	}
}

// watchExit applies the rules of exit codes.
func (d *dispatcher) watchExit(ctx context.Context, w *worker) {
	defer close(w.dealt)
	select {
	case <-w.exited:
	case <-ctx.Done():
		<-w.exited
	}
	d.mu.Lock()
	killed := w.killed
	d.mu.Unlock()
	d.host.event(Event{Kind: HandlerExited, Pid: w.cmd.Process.Pid, ExitCode: w.code})
	if killed {
		return
	}
	switch w.code {
	case exitSuccess:
		// Nothing happens, for good: the host stays up, and every invocation meets a closed port. (Before the handler
		// was ready the probing goes on, and its end is an error: waitReady.)
	case exitRestart:
		d.restart(ctx, w, "exit code 200 asks for it")
	default:
		d.failed(ctx, w, fmt.Errorf("exited with code %d (0x%X)", w.code, w.code))
	}
}

// failed counts an error of the handler and restarts it, or gives up. Errors more than thirty minutes apart don't add
// up.
func (d *dispatcher) failed(ctx context.Context, w *worker, cause error) {
	now := d.host.clock.Now()
	d.mu.Lock()
	if d.worker != w || d.stopped {
		d.mu.Unlock()
		return
	}
	if n := len(d.errors); n > 0 && now.Sub(d.errors[n-1]) > errorWindow {
		d.errors = nil
	}
	d.errors = append(d.errors, now)
	d.mu.Unlock()
	d.restart(ctx, w, cause.Error())
}

// restart kills what is left of w and starts the handler again: at once, without a pause. Three errors end the host.
func (d *dispatcher) restart(ctx context.Context, w *worker, why string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.worker != w || d.stopped {
		return // another goroutine restarts it
	}
	d.unreadyLocked()
	d.killLocked(w, why)
	d.client.CloseIdleConnections()
	if len(d.errors) >= maxHandlerErrors {
		d.host.event(Event{Kind: HandlerGaveUp, Text: why})
		d.host.shutdown(ErrHandlerGaveUp)
		return
	}
	d.host.event(Event{Kind: HandlerRestarting, Text: why})
	if err := d.startLocked(ctx); err != nil {
		d.host.shutdown(err)
	}
}

// restartFor is what a timeout of one invocation does: the process dies, and all that runs in it (docs/facts.md F24,
// WebScriptHostExceptionHandler.cs). It is not counted as an error.
func (d *dispatcher) restartFor(ctx context.Context, why string) {
	d.mu.Lock()
	w := d.worker
	d.mu.Unlock()
	d.restart(ctx, w, why)
}

func (d *dispatcher) unreadyLocked() {
	if d.isReady {
		d.isReady = false
		d.ready = make(chan struct{})
	}
}

func (d *dispatcher) killLocked(w *worker, why string) {
	w.killed = true
	if !gone(w) {
		w.kill()
		d.host.event(Event{Kind: HandlerKilled, Pid: w.cmd.Process.Pid, Text: why})
	}
}

// waitUntilReady returns when the handler can be called. The host waits four times the initialization timeout
// (WorkerFunctionInvoker.cs DelayUntilFunctionDispatcherInitializedOrShutdown).
func (d *dispatcher) waitUntilReady(ctx context.Context) error {
	d.mu.Lock()
	ready := d.ready
	d.mu.Unlock()
	limit := time.NewTimer((maxHandlerErrors + 1) * d.host.options.Tune.InitializationTimeout)
	defer limit.Stop()
	select {
	case <-ready:
		return nil
	case <-limit.C:
		return &InvocationError{Reason: ReasonNotReady}
	case <-ctx.Done():
		return &InvocationError{Reason: ReasonStopped, Err: ctx.Err()}
	}
}

func (d *dispatcher) pid() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.worker == nil {
		return 0
	}
	return d.worker.cmd.Process.Pid
}

// current is the handler's current run, nil before the first.
func (d *dispatcher) current() *worker {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.worker
}

// exitNews is how long awaitExit waits at most, in wall time.
const exitNews = 200 * time.Millisecond

// awaitExit lets the news of a dead handler arrive after an invocation met a closed connection. In Azure it is there
// long before the next delivery of a message; on loopback the deliveries would win, and burn while the host still
// believes that its handler lives. A handler that lives and only hung up costs the wait.
func (d *dispatcher) awaitExit(w *worker, failed error) {
	var invocation *InvocationError
	if w == nil || !errors.As(failed, &invocation) || invocation.Reason != ReasonConnection {
		return
	}
	limit := time.NewTimer(exitNews)
	defer limit.Stop()
	select {
	case <-w.dealt:
	case <-limit.C:
	}
}

// ended says whether the handler was stopped with the host, for good.
func (d *dispatcher) ended() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.stopped
}

// stop kills the handler; nothing is restarted after it.
func (d *dispatcher) stop() {
	d.mu.Lock()
	d.stopped = true
	if d.worker != nil {
		d.killLocked(d.worker, "the host stops")
	}
	d.mu.Unlock()
	d.client.CloseIdleConnections()
}
