package staging

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"

	"sqlwriter/cmd/internal/stackfile"
)

// Binary is the name of the handler's binary in the script root; host.json names it exactly so (docs/facts.md F31).
const Binary = "handler"

// Options configure Build.
type Options struct {
	// Source is the repository's root.
	Source string
	// Dir is the script root to create. An existing one is replaced. Empty means Source/.stage.
	Dir string
	// GOOS and GOARCH are the target platform; empty means this machine's.
	GOOS, GOARCH string
	// State is the state folder of a local stack. If its servers run without a host (make servers), its settings become
	// local.settings.json. Empty means that none is looked for.
	State string
	// Publish refuses a source without a git version, which is a hash of its content else, and leaves out the local
	// settings: a tool other than func would publish their keys.
	Publish bool
}

// Mapping is the file of a deployment's own columns. It stands beside host.json and is deployed with the app; the
// setting MAPPING enables it.
const Mapping = "mapping.json"

// localSettings is the file of app settings that `func start` reads.
const localSettings = "local.settings.json"

// copied lists the files that are copied into the root. The value tells whether a file is optional.
func copied() map[string]bool {
	return map[string]bool{"host.json": false, ".funcignore": false, localSettings: true, Mapping: true}
}

// Build makes a script root beside Dir and then replaces Dir with it. It copies local.settings.json if there is one,
// for `func start`, or takes that of running servers; never to publish. Errors: ErrUnnamed; a source
// without functions; a failed compilation.
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

// fill writes the script root into an empty directory.
func fill(ctx context.Context, o Options, dir string) error {
	for name, optional := range copied() {
		if name == localSettings && o.Publish {
			continue
		}
		err := copyFile(filepath.Join(o.Source, name), filepath.Join(dir, name))
		if err != nil && (!optional || !errors.Is(err, fs.ErrNotExist)) {
			return err
		}
	}
	if err := copyServersSettings(ctx, o.State, filepath.Join(dir, localSettings)); err != nil {
		return err
	}
	functions, err := filepath.Glob(filepath.Join(o.Source, "functions", "*", "function.json"))
	if err != nil {
		return err
	}
	if len(functions) == 0 { // the host would accept such a root and run nothing
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

// copyServersSettings copies the settings of running servers. A stack with a host of its own is left alone: a second
// host would divide the feed with it.
func copyServersSettings(ctx context.Context, state, to string) error {
	if state == "" {
		return nil
	}
	s, running, err := stackfile.Read(ctx, state)
	if errors.Is(err, fs.ErrNotExist) || (err == nil && (!running || s.Functions != "")) {
		return nil
	}
	if err != nil {
		return err
	}
	if s.Settings == "" {
		return errors.New("stage: the local stack is still starting: try again when it is up")
	}
	return copyFile(s.Settings, to)
}

// compile builds the handler without cgo, so that it runs on any image (docs/facts.md F32), and sets its version. The
// local stack, func start and a deployment all use this build. Only the linker sees the version, so a new one
// recompiles nothing.
func compile(ctx context.Context, o Options, path string) error {
	name, err := version(ctx, o.Source)
	if err != nil && o.Publish {
		return err
	}
	absolute, err := filepath.Abs(path) // the tool runs in Source
	if err != nil {
		return err
	}
	// Go's own version control stamp would be a second name, and it stops the build where git fails.
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
	if filepath.Base(to) == localSettings { // it may hold keys
		mode = 0o600
	}
	return os.WriteFile(to, content, mode) //nolint:gosec // the caller chooses the paths
}
