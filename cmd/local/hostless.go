package main

import (
	"context"
	"errors"
	"os"
	"time"

	"sqlwriter/cmd/local/internal/term"
)

// serversCommand is `make servers`: the stack without a host. The user's own host, `func start`, runs over it.
type serversCommand struct {
	Fresh bool   `env:"FRESH" help:"Delete the state in .local, and the tables of a stack in the database of SQL_CONNECTION."`
	SQL   string `name:"sql" env:"SQL_CONNECTION" help:"Database on a SQL Server to use instead of a SQLite file, as in run." placeholder:"CONNECTION"`
	State string `help:"Folder of the state (default .local)." placeholder:"DIR"`
}

// Run runs the servers until ctx ends.
func (c *serversCommand) Run(ctx context.Context) (err error) {
	ctx, cancel := withParent(ctx)
	defer cancel()
	s := &stack{out: term.New(os.Stdout), hostless: true, began: time.Now(), pauses: map[string]time.Duration{}}
	if err := s.prepare(ctx, runCommand{Fresh: c.Fresh, SQL: c.SQL, State: c.State}); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.end()) }()
	if err := s.up(ctx); err != nil {
		return s.explain(ctx, err)
	}
	s.out.Linef("\nthe servers are running; Ctrl-C ends them. In another terminal:\n" +
		"  make stage && cd .stage && func start\n" +
		"  make ctl && bin/sqlwriterctl document submit --replace examples/01-plain-success.json")
	return s.race(ctx, s.stay)
}
