// Command mutants checks that the tests detect faults in the product. It makes one listed change (a mutant) to the
// source at a time, and runs the test that must fail because of it. The checkout stays as it is: `go test -overlay`
// replaces the file.
//
//	go run ./test/mutants            all mutants
//	go run ./test/mutants -run guard those whose name contains "guard"
//
// A mutant is a row of table.go. The command fails when a mutant does not apply, does not compile, or passes its test.
package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"
)

// mutant is one deliberate mistake.
type mutant struct {
	// name says what is broken.
	name string
	// file is the path from the repository's root, old what stands in it exactly once, new what stands there instead.
	file, old, new string
	// pkg and test are what must fail.
	pkg, test string
}

// perMutant bounds one test; parallel is how many run side by side.
const (
	perMutant = 5 * time.Minute
	parallel  = 2
)

func main() {
	only := flag.String("run", "", "only mutants whose name contains this")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, *only); err != nil {
		fmt.Fprintln(os.Stderr, "mutants:", err)
		os.Exit(1)
	}
}

// run kills the mutants whose name contains only. Each has its line when its test ends; the error names one that lives.
func run(ctx context.Context, only string) error {
	dir, err := os.MkdirTemp("", "mutants-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir) //nolint:errcheck // a temporary folder
	began, ran := time.Now(), 0
	var group errgroup.Group
	group.SetLimit(parallel)
	for i, m := range table() {
		if !strings.Contains(m.name, only) {
			continue
		}
		ran++
		group.Go(func() error {
			start := time.Now()
			if err := m.kill(ctx, filepath.Join(dir, fmt.Sprint(i))); err != nil {
				fmt.Printf("ALIVE  %5.1f s  %s: %v\n", time.Since(start).Seconds(), m.name, err)
				return fmt.Errorf("%q lives", m.name)
			}
			fmt.Printf("killed %5.1f s  %-60s %s\n", time.Since(start).Seconds(), m.name, m.test)
			return nil
		})
	}
	err = group.Wait()
	fmt.Printf("%d mutants in %.0f s\n", ran, time.Since(began).Seconds())
	return err
}

// kill runs the mutant's test over the broken file and answers nil when the test fails as it must.
func (m mutant) kill(ctx context.Context, dir string) error {
	overlay, err := m.overlay(dir)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, perMutant)
	defer cancel()
	cmd := exec.CommandContext(ctx, "go", "test", "-vet=off", "-overlay", overlay, "-count=1", "-run", "^"+m.test+"$", "./"+m.pkg) //nolint:gosec // our own table
	output, err := cmd.CombinedOutput()
	var exit *exec.ExitError
	switch {
	case err == nil:
		if bytes.Contains(output, []byte("no tests to run")) {
			return fmt.Errorf("%s has no test %s", m.pkg, m.test)
		}
		return fmt.Errorf("%s passes", m.test)
	case !errors.As(err, &exit):
		return err
	case bytes.Contains(output, []byte("[build failed]")), bytes.Contains(output, []byte("[setup failed]")):
		return fmt.Errorf("it does not compile:\n%s", output)
	case !bytes.Contains(output, []byte("--- FAIL: "+m.test)) && !bytes.Contains(output, []byte("panic:")):
		return fmt.Errorf("%s failed otherwise:\n%s", m.test, output)
	}
	return nil
}

// overlay writes the broken file and the overlay that names it.
func (m mutant) overlay(dir string) (string, error) {
	whole, err := os.ReadFile(m.file)
	if err != nil {
		return "", err
	}
	if n := strings.Count(string(whole), m.old); n != 1 {
		return "", fmt.Errorf("%s: expected the text to be broken once, found it %d times", m.file, n)
	}
	if err := os.MkdirAll(dir, 0o750); err != nil {
		return "", err
	}
	broken := filepath.Join(dir, filepath.Base(m.file))
	if err := os.WriteFile(broken, []byte(strings.Replace(string(whole), m.old, m.new, 1)), 0o600); err != nil { //nolint:gosec // a folder of our own
		return "", err
	}
	absolute, err := filepath.Abs(m.file)
	if err != nil {
		return "", err
	}
	text, err := json.Marshal(map[string]map[string]string{"Replace": {absolute: broken}})
	if err != nil {
		return "", err
	}
	overlay := filepath.Join(dir, "overlay.json")
	return overlay, os.WriteFile(overlay, text, 0o600)
}
