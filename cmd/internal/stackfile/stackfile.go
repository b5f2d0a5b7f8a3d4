// Package stackfile reads and writes .local/stack.json, the description of a running local stack: its process, its host
// and its settings. `make run` and `make servers` write it; sqlwriterctl finds the app and its settings by it, `make
// stage` its settings.
package stackfile

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"
)

const (
	// Name is the file's name inside the state folder.
	Name = "stack.json"
	// Dir is the state folder's name inside the repository.
	Dir = ".local"
)

// Stack describes a running stack. The settings are in a file of their own.
type Stack struct {
	// Runner is the process that starts and ends the servers.
	Runner Process `json:"runner"`
	// Functions is the host's address, http://127.0.0.1:PORT; empty until it is known, and where only the servers run.
	Functions string `json:"functions,omitempty"`
	// FunctionKey opens the operators' API of Functions. It is the same on every machine, and opens nothing else.
	FunctionKey string `json:"function_key,omitempty"`
	// Settings is the path of the handler's app settings, in the form of a local.settings.json.
	Settings string `json:"settings,omitempty"`
	// Since is the time of the start.
	Since time.Time `json:"since"`
}

// Process identifies a process. A process id alone does not, because the system reuses it.
type Process struct {
	Name string `json:"name"`
	PID  int    `json:"pid"`
	// Started distinguishes this process from a later one with the same id (see the function Started).
	Started string `json:"started"`
}

// Identify makes the Process of a process id. It fails if no process has this id.
func Identify(ctx context.Context, name string, pid int) (Process, error) {
	started, err := Started(ctx, pid)
	return Process{Name: name, PID: pid, Started: started}, err
}

// Running reports whether this process, and not a later one with the same id, still exists.
func (p Process) Running(ctx context.Context) bool {
	if p.PID <= 0 || p.Started == "" {
		return false
	}
	now, err := Started(ctx, p.PID)
	return err == nil && now == p.Started
}

// RunningError is the error of Claim when another stack is running.
type RunningError struct{ Stack Stack }

func (e *RunningError) Error() string {
	return fmt.Sprintf("a stack is running already (process %d, since %s); Ctrl-C in its terminal ends it",
		e.Stack.Runner.PID, e.Stack.Since.Local().Format(time.TimeOnly))
}

// Read reads the stack of a state folder. running tells whether its runner still exists; a killed stack leaves its file
// behind. Without a file the error is fs.ErrNotExist.
func Read(ctx context.Context, dir string) (s Stack, running bool, err error) {
	b, err := os.ReadFile(filepath.Join(dir, Name))
	if err != nil {
		return Stack{}, false, fmt.Errorf("stackfile: %w", err)
	}
	if err := json.Unmarshal(b, &s); err != nil {
		return Stack{}, false, fmt.Errorf("stackfile: %s: %w", filepath.Join(dir, Name), err)
	}
	return s, s.Runner.Running(ctx), nil
}

// Claim makes this process the runner of a state folder. If another stack runs there, the error is *RunningError.
func Claim(ctx context.Context, dir string) (Stack, error) {
	if err := os.MkdirAll(dir, 0o750); err != nil {
		return Stack{}, fmt.Errorf("stackfile: %w", err)
	}
	// a file that cannot be read belongs to no running stack
	if old, running, err := Read(ctx, dir); err == nil && running {
		return Stack{}, &RunningError{Stack: old}
	}
	runner, err := Identify(ctx, "local", os.Getpid())
	if err != nil {
		return Stack{}, fmt.Errorf("stackfile: %w", err)
	}
	mine := Stack{Runner: runner, Since: time.Now().UTC()}
	return mine, Write(dir, mine)
}

// Write replaces the file atomically.
func Write(dir string, s Stack) error {
	b, err := json.MarshalIndent(s, "", "  ")
	if err != nil {
		return fmt.Errorf("stackfile: %w", err)
	}
	path := filepath.Join(dir, Name)
	if err := os.WriteFile(path+".new", append(b, '\n'), 0o600); err != nil {
		return fmt.Errorf("stackfile: %w", err)
	}
	if err := os.Rename(path+".new", path); err != nil {
		return fmt.Errorf("stackfile: %w", err)
	}
	return nil
}

// Remove ends the claim. A missing file is not an error.
func Remove(dir string) error {
	if err := os.Remove(filepath.Join(dir, Name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("stackfile: %w", err)
	}
	return nil
}
