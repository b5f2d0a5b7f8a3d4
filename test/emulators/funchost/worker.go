package funchost

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os/exec"
	"runtime"
	"strings"
	"sync"
	"time"

	"github.com/rs/zerolog"
)

// The exit codes with a meaning (WorkerConstants.cs, docs/facts.md F22).
const (
	exitSuccess = 0   // never restarted: the host believes that all is well
	exitRestart = 200 // a wanted restart, not counted as an error
)

// worker is one run of the handler process.
type worker struct {
	cmd    *exec.Cmd
	id     string
	exited chan struct{} // closed when the process is gone; code is set by then
	dealt  chan struct{} // closed when the dispatcher has done what the exit asks for
	code   int
	killed bool // by the host; guarded by dispatcher.mu
}

// startWorker starts the handler with the environment that the host gives it (HttpWorkerProcess.cs).
func startWorker(h *Host, port string) (*worker, error) {
	w := &worker{id: newGUID(), exited: make(chan struct{}), dealt: make(chan struct{})}
	w.cmd = exec.Command(h.config.executable, h.config.arguments...) //nolint:noctx // the host kills it itself, and only with SIGKILL
	w.cmd.Dir = h.root
	w.cmd.Env = append(w.cmd.Env, h.options.Env...)
	for name, value := range h.options.Settings {
		w.cmd.Env = append(w.cmd.Env, name+"="+value)
	}
	w.cmd.Env = append(w.cmd.Env,
		"FUNCTIONS_CUSTOMHANDLER_PORT="+port, "FUNCTIONS_CUSTOMHANDLER_WORKER_ID="+w.id,
		"FUNCTIONS_HTTPWORKER_PORT="+port, "FUNCTIONS_HTTPWORKER_ID="+w.id,
		"FUNCTIONS_APP_ROOT_PATH="+h.root)
	// A grandchild may hold the pipes open; the host does not wait for it.
	w.cmd.WaitDelay = time.Second
	out, errOut := &lineWriter{emit: h.console(false)}, &lineWriter{emit: h.console(true)}
	w.cmd.Stdout, w.cmd.Stderr = out, errOut
	dieWithHost(w.cmd)
	started := make(chan error)
	go func() {
		runtime.LockOSThread() // dieWithHost: the thread must live as long as the process
		defer runtime.UnlockOSThread()
		err := w.cmd.Start()
		started <- err
		if err != nil {
			return
		}
		_ = w.cmd.Wait() // the exit code says it all
		out.flush()
		errOut.flush()
		w.code = w.cmd.ProcessState.ExitCode()
		close(w.exited)
	}()
	if err := <-started; err != nil {
		return nil, fmt.Errorf("failed to start the handler %s: %w", h.config.executable, err)
	}
	return w, nil
}

// kill ends the process the only way the host knows: SIGKILL, and a second to be gone.
func (w *worker) kill() {
	_ = w.cmd.Process.Kill() // already gone is as good
	<-w.exited
}

// console returns what happens to a line: stdout is Information; stderr is Error, or Warning if it contains "warn"
// (WorkerProcess.cs ParseErrorMessageAndLog with UseStdErrorStreamForErrorsOnly).
func (h *Host) console(stderr bool) func(string) {
	return func(text string) {
		level := zerolog.InfoLevel
		if stderr {
			level = zerolog.ErrorLevel
			if strings.Contains(strings.ToLower(text), "warn") {
				level = zerolog.WarnLevel
			}
		}
		h.options.Log.WithLevel(level).Str("category", "Host.Function.Console").Msg(text)
		if h.options.OnConsole != nil {
			h.consoleMu.Lock()
			defer h.consoleMu.Unlock()
			h.options.OnConsole(ConsoleLine{Level: level, Text: text})
		}
	}
}

// lineWriter cuts a stream into lines.
type lineWriter struct {
	mu   sync.Mutex
	rest []byte
	emit func(string)
}

func (l *lineWriter) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.rest = append(l.rest, p...)
	for {
		i := bytes.IndexByte(l.rest, '\n')
		if i < 0 {
			return len(p), nil
		}
		l.emit(strings.TrimSuffix(string(l.rest[:i]), "\r"))
		l.rest = l.rest[i+1:]
	}
}

func (l *lineWriter) flush() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.rest) > 0 {
		l.emit(string(l.rest))
		l.rest = nil
	}
}

// errNotReady means that nothing answered within initializationTimeout.
var errNotReady = errors.New("initializing HttpWorker timed out")

// waitReady asks GET / until anything answers, with any status (docs/facts.md F21, IsWorkerReady). Only a refused
// connection counts as "not yet".
func (d *dispatcher) waitReady(ctx context.Context, w *worker) error {
	tune := d.host.options.Tune
	limit := time.NewTimer(tune.InitializationTimeout)
	defer limit.Stop()
	poll := time.NewTicker(tune.ReadyPoll)
	defer poll.Stop()
	exited := w.exited
	for {
		if err := d.ping(ctx); err == nil || !refused(err) {
			return nil
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-exited:
			if w.code != exitSuccess {
				return nil // seen to where the process is watched
			}
			exited = nil // the prober does not learn of it: it goes on until its limit
		case <-limit.C:
			return errNotReady
		case <-poll.C:
		}
	}
}

func refused(err error) bool {
	var op *net.OpError
	return errors.As(err, &op)
}

func (d *dispatcher) ping(ctx context.Context) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, d.base, nil)
	if err != nil {
		return err
	}
	response, err := d.client.Do(request)
	if err != nil {
		return err
	}
	return response.Body.Close()
}
