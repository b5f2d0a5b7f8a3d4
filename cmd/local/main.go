// Command local runs the local stack: emulators of the Functions host, Cosmos DB and Service Bus, Azurite, the handler
// binary, and a SQLite file or a database on a SQL Server. `make run` and `make servers` call it. A stack begins with
// nothing and ends together.
//
//	local run        start, show one line, drain the samples, show an outage, check every row, stay up
//	local servers    start the servers without a host, for `func start`, and stay up
//
// These environment variables change `run`, the last two also `servers`:
//
//	OUTAGE=0             without the outage, which takes half a minute
//	ONCE=1               end after the check; exit code 0 only if all rows are exact
//	SQL_CONNECTION=...   on a SQL Server (sqlserver://...); the database must be empty or new
//	MAPPING=FILE         with the columns of a file; rows are then not computed a second time
//
// The hidden commands are the servers. `run` starts each as a process of its own.
package main

import (
	"context"
	"errors"
	"os"
	"os/signal"
	"syscall"

	"github.com/alecthomas/kong"
)

type cli struct {
	Run      runCommand      `cmd:"" help:"Start everything, show one invoice line, drain the samples, check every row, stay up."`
	Servers  serversCommand  `cmd:"" help:"Start the servers without a host, for the real one (func start), and stay up."`
	Cosmosdb cosmosdbCommand `cmd:"" hidden:"" help:"Serve the emulator of Cosmos DB until standard input closes."`
	Funchost funchostCommand `cmd:"" hidden:"" help:"Host a staged script root until standard input closes."`
}

const (
	exitOK     = 0
	exitFailed = 1 // also if the check finds a difference
)

func main() {
	os.Exit(run())
}

func run() int {
	var c cli
	for _, name := range []string{"ONCE", "OUTAGE", "SQL_CONNECTION", "MAPPING"} { // `make run ONCE=` means unset
		if v, set := os.LookupEnv(name); set && v == "" {
			_ = os.Unsetenv(name) // fails for impossible names only
		}
	}
	parsed := kong.Parse(&c, kong.Name("local"),
		kong.Description("The local stack of the SQL Writer."), kong.UsageOnError())
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM,
		syscall.SIGHUP, syscall.SIGPIPE)
	defer stop()
	parsed.BindTo(ctx, (*context.Context)(nil))
	err := parsed.Run()
	if err == nil {
		return exitOK
	}
	var reported *reportedError
	if !errors.As(err, &reported) {
		(&output{w: os.Stderr}).linef("local: %v", err)
	}
	return exitFailed
}

// reportedError is an error that was printed already.
type reportedError struct{ error }

func (e *reportedError) Unwrap() error { return e.error }
