package servicebus

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// Queue is a queue and its settings. A zero value means the default.
type Queue struct {
	// Name is 1 to 260 letters, digits and . - / _
	Name string
	// LockDuration is 1 ms to 5 min; default 1 min.
	LockDuration time.Duration
	// MaxDeliveryCount is 1 to 2000; default 10.
	MaxDeliveryCount int
	// RequiresDuplicateDetection drops a message whose id was seen within DuplicateDetectionWindow (20 s to 7 d;
	// default 10 min).
	RequiresDuplicateDetection bool
	DuplicateDetectionWindow   time.Duration
	// MaxMessageSize is in bytes, for a message and for a batch; default 256 KiB.
	MaxMessageSize int
	// MaxQueueDepth is how many messages fit in; default: no limit.
	MaxQueueDepth int
}

// MarshalJSON writes what the program reads: durations in ms, and nothing for what has its default.
func (q Queue) MarshalJSON() ([]byte, error) {
	return json.Marshal(struct {
		Name                       string `json:"name"`
		LockDuration               int64  `json:"lockDuration,omitempty"`
		MaxDeliveryCount           int    `json:"maxDeliveryCount,omitempty"`
		RequiresDuplicateDetection bool   `json:"requiresDuplicateDetection,omitempty"`
		DuplicateDetectionWindow   int64  `json:"duplicateDetectionWindow,omitempty"`
		MaxMessageSize             int    `json:"maxMessageSize,omitempty"`
		MaxQueueDepth              int    `json:"maxQueueDepth,omitempty"`
	}{
		q.Name, q.LockDuration.Milliseconds(), q.MaxDeliveryCount, q.RequiresDuplicateDetection,
		q.DuplicateDetectionWindow.Milliseconds(), q.MaxMessageSize, q.MaxQueueDepth,
	})
}

// Options say what to run.
type Options struct {
	// Dir is the folder of this package in the checkout: server.mjs is in it, and node_modules.
	Dir string
	// Queues are the queues.
	Queues []Queue
	// AMQP and Control are the addresses to listen on, on loopback; empty or port 0: a free port.
	AMQP, Control string
}

// ErrNotInstalled means that the program cannot run yet.
var ErrNotInstalled = errors.New(
	"the Service Bus emulator is not installed: `make test` installs it (it needs Node.js and npm)")

// Command gives the program and its arguments, for a caller that runs the process itself. It holds its end of the
// program's standard input open for as long as the program is to run. Error: ErrNotInstalled.
func (o Options) Command() (path string, args []string, err error) {
	path, err = exec.LookPath("node")
	if err != nil {
		return "", nil, fmt.Errorf("%w: %w", ErrNotInstalled, err)
	}
	if _, err := os.Stat(filepath.Join(o.Dir, "node_modules", "rhea")); err != nil {
		return "", nil, ErrNotInstalled
	}
	queues, err := json.Marshal(o.Queues)
	if err != nil {
		return "", nil, fmt.Errorf("servicebus: queues: %w", err)
	}
	args = []string{filepath.Join(o.Dir, "server.mjs"), "--queues", string(queues)}
	for _, option := range []struct{ name, value string }{{"--amqp", o.AMQP}, {"--control", o.Control}} {
		if option.value != "" {
			args = append(args, option.name, option.value)
		}
	}
	return path, args, nil
}

// Process is a running emulator. Its Control controls it.
type Process struct {
	*Control

	// AMQP is HOST:PORT for clients.
	AMQP string

	cmd    *exec.Cmd
	stdin  io.Closer
	output *strings.Builder
	ended  chan struct{}
}

// ConnectionString is for an azservicebus client of the emulator.
func (p *Process) ConnectionString() string { return ConnectionString(p.AMQP) }

// ConnectionString is for an azservicebus client of an emulator that listens at HOST:PORT. Its key is no secret: it is
// what the vendor's emulator takes, and any other would do.
func ConnectionString(address string) string {
	return "Endpoint=sb://" + address +
		";SharedAccessKeyName=RootManageSharedAccessKey;SharedAccessKey=SAS_KEY_VALUE;UseDevelopmentEmulator=true;"
}

// startTimeout is how long Node may take to load it.
const startTimeout = time.Minute

// Start starts the program and waits until it listens. It runs until Stop or Kill, beyond ctx; when the process that
// started it ends, it ends too. Errors: ErrNotInstalled, or the output of a program that ended at once.
func Start(ctx context.Context, o Options) (*Process, error) {
	path, args, err := o.Command()
	if err != nil {
		return nil, err
	}
	p := &Process{
		Control: NewControl(""), // until it says where it listens
		cmd:     exec.CommandContext(context.WithoutCancel(ctx), path, args...),
		output:  &strings.Builder{}, ended: make(chan struct{}),
	}
	p.cmd.Stderr = p.output
	if p.stdin, err = p.cmd.StdinPipe(); err != nil {
		return nil, fmt.Errorf("servicebus: %w", err)
	}
	stdout, err := p.cmd.StdoutPipe()
	if err != nil {
		return nil, fmt.Errorf("servicebus: %w", err)
	}
	if err := p.cmd.Start(); err != nil {
		return nil, fmt.Errorf("servicebus: %w", err)
	}
	listens := make(chan addresses, 1)
	go p.watch(stdout, listens)
	ctx, cancel := context.WithTimeoutCause(ctx, startTimeout, errors.New("it does not listen after a minute"))
	defer cancel()
	select {
	case a := <-listens:
		p.AMQP, p.url = a.AMQP, a.Control
		return p, nil
	case <-p.ended:
		return nil, fmt.Errorf("servicebus: the emulator ended at once: %s", strings.TrimSpace(p.output.String()))
	case <-ctx.Done():
		p.Kill()
		return nil, fmt.Errorf("servicebus: %w", context.Cause(ctx))
	}
}

type addresses struct{ AMQP, Control string }

// watch waits for the line with the addresses, then for the end.
func (p *Process) watch(stdout io.Reader, listens chan<- addresses) {
	defer close(p.ended)
	for lines := bufio.NewScanner(stdout); lines.Scan(); {
		var a addresses
		if json.Unmarshal(lines.Bytes(), &a) == nil && a.AMQP != "" {
			listens <- a
		}
	}
	_ = p.cmd.Wait() // a signal ends it, which counts as an error
}

// Done is closed when it has ended.
func (p *Process) Done() <-chan struct{} { return p.ended }

// Stop asks it to end and waits for it.
func (p *Process) Stop() {
	_ = p.stdin.Close() // fails only when it has ended already
	<-p.ended
	p.closeIdle()
}

// Kill ends it without asking.
func (p *Process) Kill() {
	_ = p.cmd.Process.Kill() // fails only when it has ended already
	p.Stop()
}
