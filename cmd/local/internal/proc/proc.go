// Package proc runs the servers of the local stack. Each is a process with its output in a log file, and none outlives
// the runner.
//
// The standard input of every process is a pipe from the runner. When the runner ends in any way, the pipe closes, and
// a process that watches it ends, too (WatchParent, test/emulators/azurite/stop-with-parent.cjs). That works on every
// system and needs no list of processes to kill. On Unix each process has its own process group, so that Ctrl-C reaches
// only the runner, which stops the processes in the right order.
package proc

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"time"
)

// Spec describes a process to start.
type Spec struct {
	// Name identifies the process in messages, and in a Group.
	Name string
	// Path and Args are the program.
	Path string
	Args []string
	// Log is the file that the output is appended to.
	Log string
}

// Process is a started process.
type Process struct {
	spec  Spec
	cmd   *exec.Cmd
	stdin io.Closer
	done  chan struct{}
	// err is set before done is closed.
	err error
}

// Start starts a process. The end of ctx does not end the process; Stop does.
func Start(ctx context.Context, s Spec) (*Process, error) {
	log, err := os.OpenFile(s.Log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", s.Name, err)
	}
	defer log.Close() //nolint:errcheck // the process has its own file handle
	cmd := exec.CommandContext(context.WithoutCancel(ctx), s.Path, s.Args...)
	cmd.Stdout, cmd.Stderr = log, log
	ownGroup(cmd)
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return nil, fmt.Errorf("%s: %w", s.Name, err)
	}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("%s: %w", s.Name, err)
	}
	p := &Process{spec: s, cmd: cmd, stdin: stdin, done: make(chan struct{})}
	go func() {
		p.err = cmd.Wait()
		close(p.done)
	}()
	return p, nil
}

// PID is the process id.
func (p *Process) PID() int { return p.cmd.Process.Pid }

// Stop asks the process to end by closing its standard input, and kills it after grace. It returns an error only if it
// had to kill the process.
func (p *Process) Stop(grace time.Duration) error {
	_ = p.stdin.Close() // fails only if it is closed already
	t := time.NewTimer(grace)
	defer t.Stop()
	select {
	case <-p.done:
		return nil
	case <-t.C:
	}
	_ = p.cmd.Process.Kill() // fails only if the process has just ended
	<-p.done
	return fmt.Errorf("%s did not end within %v and was killed", p.spec.Name, grace)
}

// Failure is the error of a process that ended without Stop.
type Failure struct {
	Name string
	// Log is the path of the log file, Tail its last lines.
	Log, Tail string
	Err       error
}

func (f *Failure) Error() string {
	return fmt.Sprintf("%s ended by itself (%v); the end of %s:\n%s", f.Name, f.Err, f.Log, f.Tail)
}

func (f *Failure) Unwrap() error { return f.Err }

// Failure describes the end of a process that ended without Stop. The process must have ended.
func (p *Process) Failure() *Failure {
	err := p.err
	if err == nil {
		err = errors.New("exit status 0")
	}
	return &Failure{Name: p.spec.Name, Log: p.spec.Log, Tail: Tail(p.spec.Log), Err: err}
}

// Group is a set of processes that are stopped together. The zero value is an empty group.
type Group struct {
	mu       sync.Mutex
	all      []*Process
	stopping bool
	failed   chan *Failure
}

// Start starts a process in the group.
func (g *Group) Start(ctx context.Context, s Spec) (*Process, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.stopping {
		return nil, fmt.Errorf("%s: the stack is ending", s.Name)
	}
	p, err := Start(ctx, s)
	if err != nil {
		return nil, err
	}
	g.all = append(g.all, p)
	failed := g.failures()
	go func() {
		<-p.done
		g.mu.Lock()
		defer g.mu.Unlock()
		if !g.stopping {
			select {
			case failed <- p.Failure():
			default: // the first failure ends everything
			}
		}
	}()
	return p, nil
}

func (g *Group) failures() chan *Failure {
	if g.failed == nil {
		g.failed = make(chan *Failure, 1)
	}
	return g.failed
}

// Failed returns a channel that receives the first process that ends without Stop.
func (g *Group) Failed() <-chan *Failure {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.failures()
}

// Stop stops all processes, the last started first, so that a server ends after its clients. Together they have the
// given time, and each has at least a second. Stop then kills the others and returns an error.
func (g *Group) Stop(within time.Duration) error {
	g.mu.Lock()
	g.stopping = true
	all := g.all
	g.all = nil
	g.mu.Unlock()
	deadline := time.Now().Add(within)
	var errs []error
	for i := len(all) - 1; i >= 0; i-- {
		errs = append(errs, all[i].Stop(max(time.Until(deadline), time.Second)))
	}
	return errors.Join(errs...)
}

// WatchParent returns a context that ends when stdin does, because then the runner has ended or calls Stop.
func WatchParent(ctx context.Context, stdin io.Reader) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(ctx)
	go func() {
		_, _ = io.Copy(io.Discard, stdin) // an error ends the context, too
		cancel()
	}()
	return ctx, cancel
}

// Tail returns the last lines of a file, or the text of the error.
func Tail(path string) string {
	const lines = 15
	b, err := os.ReadFile(path)
	if err != nil {
		return err.Error()
	}
	all := strings.Split(strings.TrimRight(string(b), "\n"), "\n")
	return "  " + strings.Join(all[max(0, len(all)-lines):], "\n  ")
}
