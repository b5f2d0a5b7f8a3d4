// Command azure makes an environment in Azure, and publishes to it: `make azure` and `make publish`. What it does there
// it does by az and func, as the person who is signed in.
//
//	go run ./cmd/azure deploy -group GROUP
//	go run ./cmd/azure publish -app NAME
//	go run ./cmd/azure check -app NAME
package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"regexp"
	"strings"
	"time"
)

// tool is what the commands have in common.
type tool struct {
	say func(line string)
	// run runs a program and returns its standard output. show prints what the program says as it comes, and returns
	// all of it. An error of both has the program's words.
	run  func(ctx context.Context, program string, args ...string) ([]byte, error)
	show func(ctx context.Context, dir, program string, args ...string) ([]byte, error)
	// wait waits between two attempts.
	wait func(ctx context.Context, d time.Duration) error
	// ask reports whether a person says yes. Without a terminal nobody does.
	ask func(question string) bool
}

func main() {
	t := tool{say: func(line string) { fmt.Println(line) }, run: run, show: show, wait: wait, ask: ask}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := t.command(ctx, os.Args[1:])
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// command runs what the command line says.
func (t tool) command(ctx context.Context, args []string) error {
	name := strings.Join(args[:min(1, len(args))], "")
	flags := flag.NewFlagSet("azure "+name, flag.ExitOnError)
	var command func(context.Context) error
	switch name {
	case "deploy":
		d := deployment{tool: t}
		flags.StringVar(&d.group, "group", "", "the resource group")
		flags.StringVar(&d.from, "params", "", "parameters that the group's file begins with, at the first time")
		flags.StringVar(&d.mode, "mode", "", "live or shadow, if it shall change")
		flags.StringVar(&d.prefix, "lease-prefix", "", "prefix of the leases, if it shall change")
		flags.StringVar(&d.admins, "sql-admin", "", "Entra group that administers a server that is made")
		flags.BoolVar(&d.yes, "yes", false, "what would change was looked at")
		flags.BoolVar(&d.restore, "restore", false, "write the parameter file as the last deployment had it, and do no more")
		command = d.deploy
	case "publish":
		p := publication{check: check{tool: t, source: "."}}
		flags.StringVar(&p.app, "app", "", "the function app")
		flags.StringVar(&p.migrated, "migrated", "", "the set of procedures that the database has, where it cannot be asked")
		command = p.publish
	case "check":
		c := check{tool: t}
		flags.StringVar(&c.app, "app", "", "the function app's name")
		flags.StringVar(&c.source, "source", ".", "the repository's root")
		command = c.check
	default:
		return errors.New("azure deploy, azure publish or azure check")
	}
	if err := flags.Parse(args[1:]); err != nil {
		return err
	}
	return command(ctx)
}

func run(ctx context.Context, program string, args ...string) ([]byte, error) {
	out, err := exec.CommandContext(ctx, program, args...).Output()
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		return nil, explained(fmt.Errorf("%s: %w\n%s%s", program, err, out, exit.Stderr))
	}
	return out, explained(err)
}

func show(ctx context.Context, dir, program string, args ...string) ([]byte, error) {
	var said bytes.Buffer
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Dir, cmd.Stdout, cmd.Stderr = dir, io.MultiWriter(os.Stdout, &said), io.MultiWriter(os.Stderr, &said)
	if err := cmd.Run(); err != nil {
		return said.Bytes(), explained(fmt.Errorf("%s: %w\n%s", program, err, said.Bytes()))
	}
	return said.Bytes(), nil
}

func wait(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(d):
		return nil
	}
}

func ask(question string) bool {
	if in, err := os.Stdin.Stat(); err != nil || in.Mode()&os.ModeCharDevice == 0 {
		return false
	}
	fmt.Print(question)
	answer, _ := bufio.NewReader(os.Stdin).ReadString('\n') // the end of the input is no yes
	return strings.TrimSpace(answer) == "yes"
}

// refusals are what az and func refuse for a reason that one command ends.
var refusals = []struct{ says, advice string }{ //nolint:gochecknoglobals // a table
	{
		`"az": executable file not found`,
		"az, the Azure CLI, is not on the PATH: https://learn.microsoft.com/cli/azure/install-azure-cli",
	},
	{
		`"func": executable file not found`,
		"func is not on the PATH: npm install -g azure-functions-core-tools@4",
	},
	{`'?az login'?`, "nobody is signed in: az login"},
	{`ResourceGroupNotFound`, "the resource group does not exist: az group create -n GROUP -l LOCATION"},
	{
		`not registered to use namespace '([\w.]+)'`,
		"the subscription has not registered a provider. Who may do that: az provider register --namespace $1 --wait",
	},
	{
		`download Bicep CLI|latest Bicep version|Bicep versions|"bicep" executable`,
		"az cannot download its Bicep. With a bicep of your own on the PATH: az config set bicep.use_binary_from_path=true",
	},
	{
		`roleAssignments/write`,
		"you may not assign roles: write `param assignRoles = false` into the parameter file, and send the commands that are printed then",
	},
}

// explained adds to an error what ends it.
func explained(err error) error {
	for _, r := range refusals {
		if err == nil {
			break
		}
		pattern := regexp.MustCompile(r.says)
		if m := pattern.FindStringSubmatchIndex(err.Error()); m != nil {
			return fmt.Errorf("%w\n%s", err, pattern.ExpandString(nil, r.advice, err.Error(), m))
		}
	}
	return err
}
