// Command handler is the custom handler that the Azure Functions host starts: it serves every function of the app on the
// port that the host names. See internal/app for its life and handlers for what it answers.
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
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, os.Interrupt)
	code := app.Main(ctx, app.Options{Lookup: os.LookupEnv, Stdout: os.Stdout})
	stop()
	os.Exit(code)
}
