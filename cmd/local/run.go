package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"sqlwriter/cmd/internal/stackfile"
	"sqlwriter/cmd/local/expect"
	"sqlwriter/cmd/local/internal/proc"
	"sqlwriter/cmd/local/internal/term"
	"sqlwriter/cmd/local/outage"
	"sqlwriter/internal/cosmos"
	"sqlwriter/internal/timer"
)

// stopWithin bounds the end of the whole stack.
const stopWithin = 8 * time.Second

// runCommand is `make run`.
type runCommand struct {
	Once    bool          `env:"ONCE" help:"Use a temporary folder, check exactly, end everything."`
	Fresh   bool          `env:"FRESH" help:"Delete the state in .local, and the tables of a stack in the database of SQL_CONNECTION."`
	SQL     string        `name:"sql" env:"SQL_CONNECTION" help:"Database on a SQL Server to use instead of a SQLite file: sqlserver://...; empty, or created if it does not exist." placeholder:"CONNECTION"`
	State   string        `help:"Folder of the state (default .local; its script root is then inside it)." placeholder:"DIR"`
	Outage  bool          `env:"OUTAGE" default:"true" negatable:"" help:"Switch SQL off for 10 s and show the effect."`
	Timeout time.Duration `default:"4m" help:"Longest time for the samples; after that the run has failed."`
}

// stack is one run of the local stack: its servers, the connections to them, and the output.
type stack struct {
	out   *term.Output
	root  string // of the repository
	dir   string // of the state
	stage string // the script root
	once  bool
	// outages enables the outage. hostless leaves out host and handler.
	outages, hostless bool
	file              stackfile.Stack
	group             proc.Group

	// sql takes SQL away from the handler and gives it back; nil if it cannot. outage is held meanwhile.
	sql     outage.Switch
	outage  sync.Mutex
	control *http.Server
	// isUp is set once every server was ready: from then on one that ends is started again.
	isUp   atomic.Bool
	pauses map[string]time.Duration

	settings  map[string]string
	documents *cosmos.Container
	db        database
	watch     *watcher
	// before are the tables before the first document; nil if the state comes from an earlier run.
	before expect.Tables
	began  time.Time
	took   phases
}

// Run runs the stack until ctx ends, or with Once until everything is checked.
func (c *runCommand) Run(ctx context.Context) (err error) {
	ctx, cancel := withParent(ctx)
	defer cancel()
	s := &stack{out: term.New(os.Stdout), once: c.Once, outages: c.Outage, began: time.Now(), pauses: map[string]time.Duration{}}
	if err := s.prepare(ctx, *c); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.end()) }()
	if err := s.up(ctx); err != nil {
		return s.explain(ctx, err)
	}
	return s.race(ctx, func(ctx context.Context) error {
		sampleCtx, done := context.WithTimeoutCause(ctx, c.Timeout, fmt.Errorf("not finished within %v", c.Timeout))
		exact, err := s.samples(sampleCtx)
		done()
		switch {
		case err != nil:
			return s.explain(ctx, err)
		case c.Once && !exact:
			return &reportedError{errors.New("not exact")}
		case c.Once:
			return nil
		}
		s.hints()
		return s.stay(ctx)
	})
}

// prepare finds the folders, checks the prerequisites, claims the state folder, and opens the database.
func (s *stack) prepare(ctx context.Context, c runCommand) (err error) {
	if s.root, err = repositoryRoot(); err != nil {
		return err
	}
	if err := prerequisites(); err != nil {
		return err
	}
	if err := checkConnection(c.SQL); err != nil {
		return err
	}
	if err := s.folders(c.State); err != nil {
		return err
	}
	if s.file.Runner, err = stackfile.Identify(ctx, "run", os.Getpid()); err != nil {
		return err
	}
	s.file.Since = s.began.UTC()
	killed, err := stackfile.Claim(ctx, s.dir, s.file)
	var running *stackfile.RunningError
	if errors.As(err, &running) {
		return fmt.Errorf("%w: functions %s, Cosmos %s; Ctrl-C in its terminal ends it", err, cmp.Or(running.Stack.Functions, "none"), running.Stack.Cosmos)
	}
	if err != nil {
		return err
	}
	if killed != nil {
		s.out.Linef("the stack of process %d was killed; its state is reused", killed.Runner.PID)
		if err := s.reap(ctx, *killed); err != nil {
			return errors.Join(err, s.end())
		}
	}
	if c.Fresh {
		if err := s.forget(); err != nil {
			return errors.Join(err, s.end())
		}
	}
	if err := os.MkdirAll(s.logs(), 0o750); err != nil {
		return errors.Join(err, s.end())
	}
	if err := s.openDatabase(ctx, c); err != nil {
		return errors.Join(err, s.end())
	}
	return nil
}

// folders chooses the folders of the state and of the script root. Only the run in .local uses the common script root,
// because that stack's host may start the handler from it again at any time.
func (s *stack) folders(state string) (err error) {
	switch {
	case s.once:
		s.dir, err = os.MkdirTemp(state, "sqlwriter-")
	case state != "":
		s.dir, err = filepath.Abs(state)
	default:
		s.dir, s.stage = filepath.Join(s.root, stackfile.Dir), filepath.Join(s.root, ".stage")
		return nil
	}
	s.stage = filepath.Join(s.dir, "stage")
	return err
}

// reap waits until the servers of a killed stack have ended by themselves, and kills the others.
func (s *stack) reap(ctx context.Context, killed stackfile.Stack) error {
	deadline := time.Now().Add(stopWithin)
	for _, p := range killed.Servers {
		for p.Running(ctx) && time.Now().Before(deadline) && timer.Wait(ctx, 50*time.Millisecond) == nil {
		}
		if !p.Running(ctx) {
			continue
		}
		left, err := os.FindProcess(p.PID)
		if err == nil {
			err = left.Kill()
		}
		if err != nil && !errors.Is(err, os.ErrProcessDone) {
			return fmt.Errorf("process %d (%s) of the killed stack cannot be ended: %w", p.PID, p.Name, err)
		}
		s.out.Linef("process %d (%s) of the killed stack did not end and was killed", p.PID, p.Name)
	}
	return nil
}

// forget deletes the state, except the claim.
func (s *stack) forget() error {
	entries, err := os.ReadDir(s.dir)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if e.Name() == stackfile.Name {
			continue
		}
		if err := os.RemoveAll(filepath.Join(s.dir, e.Name())); err != nil {
			return err
		}
	}
	return nil
}

func (s *stack) logs() string { return filepath.Join(s.dir, "logs") }

// end stops the servers, closes the connections, ends the claim, and deletes a temporary folder.
func (s *stack) end() error {
	if s.documents != nil {
		s.documents.Close()
	}
	errs := []error{s.endControl()}
	if err := s.group.Stop(stopWithin); err != nil {
		errs = append(errs, err)
	}
	if s.db != nil { // the handler uses the database until the servers have stopped
		errs = append(errs, s.db.close())
	}
	errs = append(errs, stackfile.Remove(s.dir))
	if s.once {
		errs = append(errs, os.RemoveAll(s.dir))
	}
	return errors.Join(errs...)
}

// stay waits for Ctrl-C.
func (s *stack) stay(ctx context.Context) error {
	<-ctx.Done()
	s.out.Linef("\nending everything ...")
	return nil
}

// explain adds the end of the log to an error, unless the run was interrupted.
func (s *stack) explain(ctx context.Context, err error) error {
	s.out.Done()
	if ctx.Err() != nil {
		return &reportedError{errors.New("ended before it was finished")}
	}
	var f *proc.Failure
	if errors.As(err, &f) {
		return err
	}
	log := filepath.Join(s.logs(), "functions.log")
	if _, statErr := os.Stat(log); statErr != nil {
		return err
	}
	return fmt.Errorf("%w\nthe end of %s:\n%s", err, log, proc.Tail(log, 15))
}

// withParent ends the run when `go run` ends. A killed `go run` does not end its child, so the stack would go on unseen.
func withParent(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(ctx)
	if exe, err := os.Executable(); err != nil || !strings.Contains(exe, "go-build") {
		return ctx, cancel // a binary of `go build` may outlive its shell
	}
	parent := os.Getppid()
	go func() {
		ticker := time.NewTicker(500 * time.Millisecond)
		defer ticker.Stop()
		for os.Getppid() == parent {
			select {
			case <-ctx.Done():
				return
			case <-ticker.C:
			}
		}
		cancel()
	}()
	return ctx, cancel
}

// race runs part until it ends. A server that ends meanwhile is started again, or, before all were ready, ends the part: its
// failure is then the error, because it is the cause.
func (s *stack) race(ctx context.Context, part func(context.Context) error) error {
	g, ctx := errgroup.WithContext(ctx)
	ctx, over := context.WithCancel(ctx)
	g.Go(func() error {
		defer over()
		return part(ctx)
	})
	g.Go(func() error {
		for {
			select {
			case <-ctx.Done():
				return nil
			case f := <-s.group.Failed():
				if !s.isUp.Load() {
					return f
				}
				if err := s.restart(ctx, f); err != nil {
					return err
				}
			}
		}
	})
	return g.Wait()
}

// A server starts again after firstPause. The pause doubles up to longestPause while the server keeps ending within calm.
const (
	firstPause, longestPause = time.Second, 30 * time.Second
	calm                     = time.Minute
)

// restart starts a server again, on its state. A host that gave up is started by the platform in Azure (docs/facts.md F22).
func (s *stack) restart(ctx context.Context, f *proc.Failure) error {
	pause := min(2*s.pauses[f.Name], longestPause)
	if pause == 0 || f.Lived > calm {
		pause = firstPause
	}
	s.pauses[f.Name] = pause
	what := f.Name + " ended (%v) and starts again in %v with the state that it stored; log: %s"
	if f.Name == functionsName {
		what = "the host ended (%v), as in Azure after the third failure of the handler within half an hour; another starts in %v; log: %s"
	}
	s.out.Linef(what, f.Err, pause, f.Log)
	if timer.Wait(ctx, pause) != nil {
		return nil //nolint:nilerr // the stack ends
	}
	return s.launch(ctx, f.Spec)
}
