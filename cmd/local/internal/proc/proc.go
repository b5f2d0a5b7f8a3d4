// Package proc runs the servers of the local stack: each a process of its own, its output in a log file, and none of them
// left behind.
//
// Every process is started with a pipe as its standard input that only the runner holds open. When the runner ends, however
// it ends, the pipe closes, and a process that watches it (WatchParent, test/emulators/azurite/stop-with-parent.cjs) ends too. That
// works on every system and needs no list of processes to kill. On Unix they are also in a process group of their own:
// Ctrl-C reaches the runner alone, which ends them in the right order.
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

// Spec is what to run.
type Spec struct {
	// Name is what people call it.
	Name string
	// Path and Args are the program; Dir where it runs (empty: here); Env is added to the runner's environment.
	Path string
	Args []string
	Dir  string
	Env  []string
	// Log is the file that its output is appended to.
	Log string
}

// Process is a started process.
type Process struct {
	spec  Spec
	cmd   *exec.Cmd
	stdin io.Closer
	done  chan struct{}
	err   error
}

// Start starts a process. It lives until Stop, beyond ctx: it must be asked to end, not cut off.
func Start(ctx context.Context, s Spec) (*Process, error) {
	log, err := os.OpenFile(s.Log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", s.Name, err)
	}
	defer log.Close() //nolint:errcheck // the process has its own handle of the file
	cmd := exec.CommandContext(context.WithoutCancel(ctx), s.Path, s.Args...)
	cmd.Dir, cmd.Stdout, cmd.Stderr = s.Dir, log, log
	cmd.Env = append(os.Environ(), s.Env...)
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

// Stop asks it to end by closing its standard input, and kills it when it has not ended within grace. It answers an error
// only when it had to be killed.
func (p *Process) Stop(grace time.Duration) error {
	_ = p.stdin.Close() // fails only when it is closed already
	t := time.NewTimer(grace)
	defer t.Stop()
	select {
	case <-p.done:
		return nil
	case <-t.C:
	}
	_ = p.cmd.Process.Kill() // fails only when it has just ended
	<-p.done
	return fmt.Errorf("%s did not end within %v and was killed", p.spec.Name, grace)
}

// Failure is a process that ended although nobody asked it to.
type Failure struct {
	Name string
	// Log is its log file and Tail the end of it.
	Log, Tail string
	Err       error
}

func (f *Failure) Error() string {
	return fmt.Sprintf("%s ended by itself (%v); the end of %s:\n%s", f.Name, f.Err, f.Log, f.Tail)
}

func (f *Failure) Unwrap() error { return f.Err }

// Failure says how a process ended that nobody stopped. It must have ended.
func (p *Process) Failure() *Failure {
	err := p.err
	if err == nil {
		err = errors.New("exit status 0")
	}
	return &Failure{Name: p.spec.Name, Log: p.spec.Log, Tail: Tail(p.spec.Log, 15), Err: err}
}

// Group is processes that belong together. The zero value is an empty one.
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
			default: // one failure is enough to end everything
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

// Failed gives the first process that ends although nobody asked it to.
func (g *Group) Failed() <-chan *Failure {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.failures()
}

// Stop ends all processes, the last started first: a server must not go before those that use it. Together they have the
// given time, and each at least a second; what has not ended by then is killed, and the error says so.
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

// WatchParent answers a context that ends when the standard input does: the runner has gone, or wants us to.
func WatchParent(ctx context.Context, stdin io.Reader) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(ctx)
	go func() {
		_, _ = io.Copy(io.Discard, stdin) // however it ends, it has ended
		cancel()
	}()
	return ctx, cancel
}

// Tail gives the last lines of a file, or why it cannot.
func Tail(path string, lines int) string {
	b, err := os.ReadFile(path)
	if err != nil {
		return err.Error()
	}
	all := strings.Split(strings.TrimRight(string(b), "\n"), "\n")
	return "  " + strings.Join(all[max(0, len(all)-lines):], "\n  ")
}
