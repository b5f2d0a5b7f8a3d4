package staging

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
)

// Binary is the name of the handler's binary in the script root; host.json names it exactly so (docs/facts.md F31).
const Binary = "handler"

// Options say what to stage and where.
type Options struct {
	// Source is the repository's root.
	Source string
	// Dir is the script root to make; what was there is replaced. Empty: Source/.stage.
	Dir string
	// GOOS and GOARCH are the target; empty means this machine.
	GOOS, GOARCH string
	// Named refuses a source that git has no name for; otherwise such a build is called by its content.
	Named bool
}

// ColumnNames is the file of a deployment's own column names: beside host.json it is deployed with the app, and the
// setting COLUMN_NAMES says that it is used.
const ColumnNames = "column-names.json"

// copied are the files that go into the root as they are; those that are optional may be absent.
func copied() map[string]bool {
	return map[string]bool{"host.json": false, ".funcignore": false, "local.settings.json": true, ColumnNames: true}
}

// Build makes a script root beside Dir and puts it in Dir's place. local.settings.json goes along when there is one, for
// `func start`; `func` never publishes it. Errors: ErrUnnamed; a source without functions; what the Go tool said.
func Build(ctx context.Context, o Options) error {
	if o.Dir == "" {
		o.Dir = filepath.Join(o.Source, ".stage")
	}
	fresh, err := os.MkdirTemp(filepath.Dir(o.Dir), ".stage-")
	if err != nil {
		return fmt.Errorf("stage: %w", err)
	}
	if err := fill(ctx, o, fresh); err != nil {
		return errors.Join(fmt.Errorf("stage: %w", err), os.RemoveAll(fresh))
	}
	if err := os.RemoveAll(o.Dir); err != nil {
		return errors.Join(fmt.Errorf("stage: %w", err), os.RemoveAll(fresh))
	}
	if err := os.Rename(fresh, o.Dir); err != nil {
		return fmt.Errorf("stage: %w", err)
	}
	return nil
}

// fill puts everything into an empty directory.
func fill(ctx context.Context, o Options, dir string) error {
	for name, optional := range copied() {
		err := copyFile(filepath.Join(o.Source, name), filepath.Join(dir, name))
		if err != nil && (!optional || !errors.Is(err, fs.ErrNotExist)) {
			return err
		}
	}
	functions, err := filepath.Glob(filepath.Join(o.Source, "functions", "*", "function.json"))
	if err != nil {
		return err
	}
	if len(functions) == 0 { // the host would publish the root and run nothing
		return errors.New("no functions/*/function.json in " + o.Source)
	}
	for _, path := range functions {
		target := filepath.Join(dir, filepath.Base(filepath.Dir(path)))
		if err := os.Mkdir(target, 0o755); err != nil { //nolint:gosec // the host's user reads it
			return err
		}
		if err := copyFile(path, filepath.Join(target, "function.json")); err != nil {
			return err
		}
	}
	if err := compile(ctx, o, filepath.Join(dir, Binary)); err != nil {
		return err
	}
	if err := os.Chmod(dir, 0o755); err != nil { //nolint:gosec // MkdirTemp makes it private; the host's user reads it
		return err
	}
	return nil
}

// compile builds the handler without cgo, so that it runs on any image (docs/facts.md F32), and stamps its version: this is the
// one place that builds it for the local stack, for func start and to publish. Only the linker sees the version, so another
// one compiles nothing anew.
func compile(ctx context.Context, o Options, path string) error {
	name, err := version(ctx, o.Source)
	if err != nil && o.Named {
		return err
	}
	absolute, err := filepath.Abs(path) // the tool runs in Source
	if err != nil {
		return err
	}
	// Go's own record of the repository would be a second name, and stops the build where git refuses to answer.
	cmd := exec.CommandContext(ctx, "go", "build", "-trimpath", "-buildvcs=false", "-ldflags=-s -w -X "+Stamp+"="+name,
		"-o", absolute, "./cmd/handler")
	cmd.Dir = o.Source
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if o.GOOS != "" {
		cmd.Env = append(cmd.Env, "GOOS="+o.GOOS)
	}
	if o.GOARCH != "" {
		cmd.Env = append(cmd.Env, "GOARCH="+o.GOARCH)
	}
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("go build ./cmd/handler: %w\n%s", err, out)
	}
	return nil
}

func copyFile(from, to string) error {
	content, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	mode := fs.FileMode(0o644)
	if filepath.Base(to) == "local.settings.json" { // it may hold keys
		mode = 0o600
	}
	return os.WriteFile(to, content, mode) //nolint:gosec // a tool that copies what it is told to
}
