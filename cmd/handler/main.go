// Command handler is the custom handler that the Azure Functions host starts. It serves every function of the app on
// the port that the host names. Package internal/app describes the process's life cycle; package handlers describes the
// replies.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"
	_ "time/tzdata"

	"sqlwriter/internal/app"
)

func main() {
	// When the host is killed, nobody reads our output any more. A line must not end the process in the middle of its
	// work.
	signal.Ignore(syscall.SIGPIPE)
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, os.Interrupt)
	code := app.Main(ctx, app.Options{Lookup: os.LookupEnv, Stdout: os.Stdout, Stderr: os.Stderr})
	stop()
	os.Exit(code)
}
