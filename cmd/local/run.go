package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"sqlwriter/cmd/internal/stackfile"
	"sqlwriter/cmd/local/internal/proc"
	"sqlwriter/internal/cosmos"
	"sqlwriter/test/expect"
)

// stopWithin bounds the end of the whole stack.
const stopWithin = 8 * time.Second

// options are common to the commands.
type options struct {
	SQL     string `name:"sql" env:"SQL_CONNECTION" help:"Database on a SQL Server to use instead of a SQLite file: sqlserver://...; empty, or created if it does not exist." placeholder:"CONNECTION"`
	Mapping string `env:"MAPPING" help:"File of a mapping to use instead of the default; rows are then not computed a second time." placeholder:"FILE" type:"existingfile"`
	State   string `help:"Folder of the state (default .local)." placeholder:"DIR" type:"path"`
}

// runCommand is `make run`.
type runCommand struct {
	options
	Once    bool          `env:"ONCE" help:"End after the check."`
	Outage  bool          `env:"OUTAGE" default:"true" negatable:"" help:"Switch SQL off for 10 s and show the effect."`
	Timeout time.Duration `default:"4m" help:"Longest time for the samples; after that the run has failed."`
}

// Run runs the stack until ctx ends, or with Once until everything is checked.
func (c *runCommand) Run(ctx context.Context) error {
	s := &stack{out: &output{w: os.Stdout}, outages: c.Outage}
	return s.whole(ctx, c.options, func(ctx context.Context) error {
		sampleCtx, done := context.WithTimeoutCause(ctx, c.Timeout, fmt.Errorf("not finished within %v", c.Timeout))
		exact, err := s.samples(sampleCtx)
		done()
		switch {
		case err != nil:
			return err
		case c.Once && !exact && c.Mapping == "":
			return &reportedError{errors.New("not exact")}
		case c.Once:
			return nil
		}
		s.hints()
		return s.stay(ctx)
	})
}

// serversCommand is `make servers`: the stack without a host. The user's own host, `func start`, runs over it.
type serversCommand struct{ options }

// Run runs the servers until ctx ends.
func (c *serversCommand) Run(ctx context.Context) error {
	s := &stack{out: &output{w: os.Stdout}, hostless: true}
	return s.whole(ctx, c.options, func(ctx context.Context) error {
		s.out.linef("\nthe servers are running; Ctrl-C ends them. In another terminal:\n" +
			"  make stage && cd .stage && func start\n" +
			"  make ctl && bin/sqlwriterctl document submit --replace examples/01-plain-success.json")
		return s.stay(ctx)
	})
}

// stack is one run of the local stack: its servers, the connections to them, and the output.
type stack struct {
	out  *output
	root string // of the repository
	// dir has the logs, and stack.json while the stack runs. data is inside of it; the stack begins and ends without
	// it.
	dir, data string
	// outages enables the outage. hostless leaves out host and handler.
	outages, hostless bool
	group             proc.Group

	// mapping is the path of the mapping's file; empty for the default.
	mapping   string
	file      stackfile.Stack
	addresses addresses
	settings  map[string]string
	documents *cosmos.Container
	db        *database
	watch     *watcher
	// before are the tables before the first document.
	before expect.Tables
	took   phases
}

// noticedWithin bounds the time until the end of a server is noticed, which may be the cause of another error.
const noticedWithin = time.Second

// whole starts the stack, runs part, and ends the stack. A server that ends by itself ends all.
func (s *stack) whole(ctx context.Context, o options, part func(context.Context) error) (err error) {
	ctx, cancel := withParent(ctx)
	defer cancel()
	if err := s.prepare(ctx, o); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.end(context.WithoutCancel(ctx))) }()
	running, over := context.WithCancel(ctx)
	defer over()
	var ended error
	done := make(chan struct{})
	go func() {
		defer close(done)
		if ended = s.start(running, o); ended == nil {
			ended = part(running)
		}
	}()
	select {
	case failure := <-s.group.Failed():
		over()
		<-done
		return failure
	case <-done:
		return s.explain(ctx, ended)
	}
}

// start opens the database, which may be another program's, and then starts the servers.
func (s *stack) start(ctx context.Context, o options) (err error) {
	m, err := readMapping(o.Mapping)
	if err != nil {
		return err
	}
	s.mapping = o.Mapping
	if s.db, err = openDatabase(ctx, s.out, o.SQL, s.data, m); err != nil {
		return err
	}
	return s.up(ctx)
}

// prepare checks the prerequisites, claims the folder of the state, and empties it.
func (s *stack) prepare(ctx context.Context, o options) (err error) {
	if s.root, err = repositoryRoot(); err != nil {
		return err
	}
	if err := prerequisites(); err != nil {
		return err
	}
	if err := checkConnection(o.SQL); err != nil {
		return err
	}
	if s.dir = o.State; s.dir == "" {
		s.dir = filepath.Join(s.root, stackfile.Dir)
	}
	s.data = filepath.Join(s.dir, "data")
	if s.file, err = stackfile.Claim(ctx, s.dir); err != nil {
		return err
	}
	for _, dir := range []string{s.data, s.logs()} {
		if err := errors.Join(os.RemoveAll(dir), os.MkdirAll(dir, 0o750)); err != nil {
			return errors.Join(err, stackfile.Remove(s.dir))
		}
	}
	return nil
}

func (s *stack) logs() string { return filepath.Join(s.dir, "logs") }

// end stops the servers, closes the connections, deletes the state, and ends the claim.
func (s *stack) end(ctx context.Context) error {
	if s.documents != nil {
		s.documents.Close()
	}
	errs := []error{s.group.Stop(stopWithin)}
	if s.db != nil { // the handler uses the database until the servers have stopped
		errs = append(errs, s.db.end(ctx))
	}
	return errors.Join(append(errs, os.RemoveAll(s.data), stackfile.Remove(s.dir))...)
}

// stay waits for Ctrl-C.
func (s *stack) stay(ctx context.Context) error {
	<-ctx.Done()
	s.out.linef("\nending everything ...")
	return nil
}

// explain finds the cause of an error: an interruption, a server that has ended, or what the host's log says last.
func (s *stack) explain(ctx context.Context, err error) error {
	var reported *reportedError
	if err == nil || errors.As(err, &reported) {
		return err
	}
	if ctx.Err() != nil {
		return errors.New("ended before it was finished")
	}
	select {
	case failure := <-s.group.Failed():
		return failure
	case <-time.After(noticedWithin):
	}
	log := filepath.Join(s.logs(), functionsName+".log")
	if _, noLog := os.Stat(log); noLog != nil {
		return err
	}
	return fmt.Errorf("%w\nthe end of %s:\n%s", err, log, proc.Tail(log))
}

// withParent ends the stack with the process that started it: a killed make does not end its child.
func withParent(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(ctx)
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
