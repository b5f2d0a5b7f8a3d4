// Command stage lays out a script root for the Functions host: `make stage`.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"

	"sqlwriter/cmd/stage/staging"
)

func main() {
	var o staging.Options
	flag.StringVar(&o.Source, "source", ".", "the repository's root")
	flag.StringVar(&o.Dir, "dir", "", "the script root to create (default SOURCE/.stage)")
	flag.StringVar(&o.GOOS, "goos", "", "target system, linux to publish (default this machine's)")
	flag.StringVar(&o.GOARCH, "goarch", "", "target architecture, amd64 to publish (default this machine's)")
	flag.StringVar(&o.State, "state", "",
		"state folder of a local stack; its servers' settings become local.settings.json")
	flag.BoolVar(&o.Publish, "publish", false, "refuse a source without a git version, and leave out local settings")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := staging.Build(ctx, o)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
