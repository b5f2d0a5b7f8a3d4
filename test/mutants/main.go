// Command mutants checks that the tests detect faults in the product. It makes one listed change (a mutant) to the source at
// a time, and runs the test that must fail because of it. The checkout stays as it is: `go test -overlay` replaces the file.
//
//	go run ./test/mutants            all mutants
//	go run ./test/mutants -run guard those whose name contains "guard"
//	go run ./test/mutants -share 8   an eighth of them, which one is drawn from the commit
//
// A mutant is a row of a table (table.go, breaker.go, blame.go, crash.go, diff.go, runs.go, heartbeat.go, kinds.go, sqlite.go, findings.go). It has a
// file, a text that occurs in it exactly once, its replacement, and the test that must fail. The command fails when a mutant
// does not apply, does not compile, or passes its test.
package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
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
	perMutant = 3 * time.Minute
	parallel  = 2
)

func main() {
	only := flag.String("run", "", "only mutants whose name contains this")
	share := flag.Int("share", 1, "one mutant in so many: which ones is drawn from the commit, and without git from the broken files")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, os.Stdout, *only, max(1, *share)); err != nil {
		fmt.Fprintln(os.Stderr, "mutants:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, out io.Writer, only string, share int) error {
	dir, err := os.MkdirTemp("", "mutants-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir) //nolint:errcheck // a temporary folder
	var group errgroup.Group
	group.SetLimit(parallel)
	mutants := all()
	part := 0
	if share > 1 {
		by := source(ctx, mutants)
		part = draw(by, share)
		if _, err := fmt.Fprintf(out, "mutants: part %d of %d, drawn from %s\n", part+1, share, by); err != nil {
			return err
		}
	}
	lines := make([]string, len(mutants))
	errs := make([]error, len(mutants))
	began := time.Now()
	ran := 0
	for i, m := range mutants {
		if !strings.Contains(m.name, only) || i%share != part {
			continue
		}
		ran++
		group.Go(func() error {
			start := time.Now()
			errs[i] = m.kill(ctx, filepath.Join(dir, fmt.Sprint(i)))
			lines[i] = fmt.Sprintf("killed %5.1f s  %-60s %s", time.Since(start).Seconds(), m.name, m.test)
			if errs[i] != nil {
				lines[i] = fmt.Sprintf("ALIVE           %-60s %v", m.name, errs[i])
			}
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		return err
	}
	killed := 0
	for i, line := range lines {
		if line == "" {
			continue
		}
		if errs[i] == nil {
			killed++
		}
		if _, err := fmt.Fprintln(out, line); err != nil {
			return err
		}
	}
	if _, err := fmt.Fprintf(out, "%d of %d mutants killed in %.0f s\n", killed, ran, time.Since(began).Seconds()); err != nil {
		return err
	}
	if killed < ran {
		return fmt.Errorf("%d mutants live", ran-killed)
	}
	return nil
}

// all are the kept mutants.
func all() []mutant {
	return slices.Concat(table(), breakerTable(), blameTable(), crashTable(), runsTable(), heartbeatTable(), kindsTable(), missedTable(), dependenciesTable(), sqliteTable(), startTable(), statusTable(), eventsTable(), failureTable(), documentsTable(), diffTable(), rowsTable(), passesTable(), findingsTable(), nightlyTable(), evidenceTable(), dayTable(), purgeTable(), pagesTable(), browserTable(), keysTable())
}

// source names what the share is drawn from: the commit, or the content of the files that mutants break.
func source(ctx context.Context, mutants []mutant) string {
	if out, err := exec.CommandContext(ctx, "git", "rev-parse", "HEAD").Output(); err == nil {
		return "commit " + strings.TrimSpace(string(out))
	}
	sum := sha256.New()
	for _, m := range mutants {
		text, _ := os.ReadFile(m.file) // one that is missing fails its mutant
		_, _ = sum.Write(text)
	}
	return fmt.Sprintf("content %x", sum.Sum(nil))
}

// draw answers one of the parts, the same for the same text.
func draw(by string, parts int) int {
	sum := sha256.Sum256([]byte(by))
	return int(binary.BigEndian.Uint32(sum[:]) % uint32(parts)) //nolint:gosec // a small positive number
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
