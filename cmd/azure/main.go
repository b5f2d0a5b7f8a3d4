// Command azure makes an environment in Azure, and publishes to it: `make azure` and `make publish`. What it does there
// it does by az and func, as the person who is signed in.
//
//	go run ./cmd/azure deploy GROUP=name
//	go run ./cmd/azure publish APP=name
package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
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
	// run runs a program and returns its standard output; an error has all that it said.
	run func(ctx context.Context, how program, name string, args ...string) ([]byte, error)
	// wait waits between two attempts.
	wait func(ctx context.Context, d time.Duration) error
	// ask reports whether a person says yes. Without a terminal nobody does.
	ask func(ctx context.Context, question string) bool
}

// program is how a program runs: in a folder, and seen by the person while it does.
type program struct {
	dir   string
	shown bool
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := tool{say: func(line string) { fmt.Println(line) }, run: run, wait: wait, ask: ask}.command(ctx, os.Args[1:])
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// command runs what the command line says, in make's words: GROUP=name.
func (t tool) command(ctx context.Context, args []string) error {
	values := map[string]string{}
	for _, arg := range args {
		name, value, _ := strings.Cut(arg, "=")
		values[name] = value
	}
	switch args = append(args, ""); args[0] {
	case "deploy":
		return deployment{
			tool: t, group: values["GROUP"], from: values["PARAMS"], admins: values["SQL_ADMIN"], mode: values["MODE"],
			prefix: values["LEASE_PREFIX"], yes: values["YES"] != "",
		}.deploy(ctx)
	case "publish":
		return publication{t, values["APP"], values["MIGRATED"]}.publish(ctx)
	}
	return errors.New("azure deploy or azure publish")
}

func run(ctx context.Context, how program, name string, args ...string) ([]byte, error) {
	var out, said bytes.Buffer
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir, cmd.Stdout, cmd.Stderr = how.dir, &out, &said
	if how.shown {
		cmd.Stdout, cmd.Stderr = io.MultiWriter(os.Stdout, &out), io.MultiWriter(os.Stderr, &said)
	}
	if err := cmd.Run(); err != nil {
		return nil, &failure{err: fmt.Errorf("%s: %w", name, err), said: out.String() + said.String(), shown: how.shown}
	}
	return out.Bytes(), nil
}

// failure is a program that failed, and what it said. A person has seen that already if it was shown.
type failure struct {
	err   error
	said  string
	shown bool
}

func (f *failure) Error() string {
	text := f.err.Error()
	if !f.shown {
		text = strings.TrimSpace(text + "\n" + f.said)
	}
	for _, r := range refusals {
		pattern := regexp.MustCompile(r[0])
		if m := pattern.FindStringSubmatchIndex(f.err.Error() + f.said); m != nil {
			return text + "\n" + string(pattern.ExpandString(nil, r[1], f.err.Error()+f.said, m))
		}
	}
	return text
}

func (f *failure) Unwrap() error { return f.err }

// az asks az for JSON.
func (t tool) az(ctx context.Context, into any, args ...string) error {
	out, err := t.run(ctx, program{}, "az", append(args, "-o", "json")...)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(out, into); err != nil {
		return fmt.Errorf("az %s: %w", strings.Join(args, " "), err)
	}
	return nil
}

func wait(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(d):
		return nil
	}
}

func ask(ctx context.Context, question string) bool {
	if in, err := os.Stdin.Stat(); err != nil || in.Mode()&os.ModeCharDevice == 0 {
		return false
	}
	fmt.Print(question)
	return yes(ctx, os.Stdin)
}

// yes reports whether the next line is yes. Who interrupts instead is not waited for.
func yes(ctx context.Context, in io.Reader) bool {
	answer := make(chan string, 1)
	go func() {
		line, _ := bufio.NewReader(in).ReadString('\n') // the end of the input is no yes
		answer <- strings.TrimSpace(line)
	}()
	select {
	case <-ctx.Done():
		return false
	case line := <-answer:
		return line == "yes"
	}
}

// refusals are what az and func refuse for a reason that one command ends.
var refusals = [][2]string{ //nolint:gochecknoglobals // a table
	{`"az": executable file not found`, "az, the Azure CLI: https://learn.microsoft.com/cli/azure/install-azure-cli"},
	{`"func": executable file not found`, "func, the Core Tools: npm install -g azure-functions-core-tools@4"},
	{`'az login'`, "nobody is signed in: az login"},
	{`ResourceGroupNotFound`, "the resource group is not there: az group create -n GROUP -l LOCATION"},
	{`not registered to use namespace '([\w.]+)'`, "who may register providers: az provider register --namespace $1 --wait"},
	{
		`download Bicep CLI|latest Bicep version|Bicep versions|"bicep" executable`,
		"az cannot get its Bicep: put one on the PATH, and az config set bicep.use_binary_from_path=true",
	},
	{
		`AzureADOnlyAuthentication|parameter (Login|ExternalAdministratorLogin)|AadOnlyAuthenticationIsEnabled`,
		"the server is there already: with `param sqlAdmin = {}` in the parameter file make azure leaves its administrator",
	},
	{`roleAssignments/write`, "you may not assign roles: with `param assignRoles = false` in the parameter file " +
		"make azure prints what others must do"},
}
