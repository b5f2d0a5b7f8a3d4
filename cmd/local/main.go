// Command local runs the whole thing on this machine: the stand-ins for the Functions host and Cosmos DB, Azurite, the real
// handler binary and a SQLite file (or a database on a SQL Server). `make run` calls it.
//
//	go run ./cmd/local run        start, show one line, drain the samples, show an outage, check every row, stay up until Ctrl-C
//	OUTAGE=0 go run ./cmd/local run the same without the outage, which takes half a minute
//	ONCE=1 go run ./cmd/local run the same in a temporary folder, then end: exit code 0 only if everything is exact
//	FRESH=1 go run ./cmd/local run forget the state kept in .local first
//	SQL_CONNECTION=sqlserver://... go run ./cmd/local run the same on a SQL Server; the database must be empty or new
//	go run ./cmd/local demo sql-off 30s   break the running stack on purpose, and watch; also kill-handler, bad-document
//
// The other commands are the servers; `run` starts each as a process of its own.
package main

import (
	"context"
	"errors"
	"os"
	"os/signal"
	"syscall"

	"github.com/alecthomas/kong"

	"sqlwriter/cmd/local/internal/term"
)

type cli struct {
	Run      runCommand      `cmd:"" help:"Start everything, show one invoice line, drain the samples, check every row, stay up."`
	Demo     demoCommand     `cmd:"" help:"Break the running local stack on purpose, and watch."`
	Cosmosdb cosmosdbCommand `cmd:"" hidden:"" help:"Serve the stand-in for Cosmos DB until standard input closes."`
	Funchost funchostCommand `cmd:"" hidden:"" help:"Host a staged script root until standard input closes."`
}

// Exit codes: exitFailed also when something is not exact.
const (
	exitOK     = 0
	exitFailed = 1
)

func main() {
	os.Exit(run())
}

func run() int {
	var c cli
	for _, name := range []string{"ONCE", "FRESH", "OUTAGE", "SQL_CONNECTION"} { // `make run ONCE=` means no, as with any make variable
		if v, set := os.LookupEnv(name); set && v == "" {
			_ = os.Unsetenv(name) // fails for impossible names only
		}
	}
	parsed := kong.Parse(&c, kong.Name("local"), kong.Description("The local stack of the SQL Writer."), kong.UsageOnError())
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP)
	defer stop()
	parsed.BindTo(ctx, (*context.Context)(nil))
	err := parsed.Run()
	if err == nil {
		return exitOK
	}
	var said *saidError
	if !errors.As(err, &said) {
		term.New(os.Stderr).Linef("local: %v", err)
	}
	return exitFailed
}

// saidError is an error that people have read already.
type saidError struct{ error }

func (e *saidError) Unwrap() error { return e.error }
