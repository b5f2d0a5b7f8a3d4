// Package stackfile is .local/stack.json: where a running local stack listens, which processes it has and which settings
// its handler got. `make run` keeps it; sqlwriterctl finds its connections in it.
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

// Name is the file's name inside the state folder, Dir the state folder's name inside the repository.
const (
	Name = "stack.json"
	Dir  = ".local"
)

// Stack describes a running stack. It holds no secret: the settings stand in a file of their own.
type Stack struct {
	// Runner is the process that started everything and ends it.
	Runner Process `json:"runner"`
	// Servers are the processes it started.
	Servers []Process `json:"servers,omitempty"`
	// Functions, Cosmos and Blob are the addresses, like http://127.0.0.1:7071; empty until known.
	Functions string `json:"functions,omitempty"`
	Cosmos    string `json:"cosmos,omitempty"`
	Blob      string `json:"blob,omitempty"`
	// ServiceBus is amqp://HOST:PORT; ServiceBusControl is where its stand-in takes orders.
	ServiceBus        string `json:"service_bus,omitempty"`
	ServiceBusControl string `json:"service_bus_control,omitempty"`
	// Settings is the path of the app settings that the handler got, in the form of a local.settings.json.
	Settings string `json:"settings,omitempty"`
	// Since is when it started.
	Since time.Time `json:"since"`
}

// Process names one process for good: a process id alone is used again sooner or later.
type Process struct {
	Name string `json:"name"`
	PID  int    `json:"pid"`
	// Started tells this process from a later one with the same id (see Started).
	Started string `json:"started"`
}

// Identify makes the Process of a process id.
func Identify(ctx context.Context, name string, pid int) (Process, error) {
	started, err := Started(ctx, pid)
	return Process{Name: name, PID: pid, Started: started}, err
}

// Running says whether this very process is still there.
func (p Process) Running(ctx context.Context) bool {
	if p.PID <= 0 || p.Started == "" {
		return false
	}
	now, err := Started(ctx, p.PID)
	return err == nil && now == p.Started
}

// RunningError says that a stack is running already.
type RunningError struct{ Stack Stack }

func (e *RunningError) Error() string {
	return fmt.Sprintf("a stack is running already (process %d, since %s)", e.Stack.Runner.PID, e.Stack.Since.Local().Format(time.TimeOnly))
}

// Read reads the stack of a state folder and says whether its runner is still there; a stack that was killed leaves a file
// behind whose runner is not. Without a file it answers fs.ErrNotExist.
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

// Claim makes this process the runner of a state folder. It answers the stack that was there before if that was killed
// (its servers may still be ending), and *RunningError if it is alive. The file appears whole or not at all.
func Claim(ctx context.Context, dir string, mine Stack) (killed *Stack, err error) {
	if err := os.MkdirAll(dir, 0o750); err != nil {
		return nil, fmt.Errorf("stackfile: %w", err)
	}
	old, running, err := Read(ctx, dir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
	case err == nil && running:
		return nil, &RunningError{Stack: old}
	case err == nil:
		killed = &old
		fallthrough
	default: // a file that cannot be read belongs to nobody that runs
		if err := os.Remove(filepath.Join(dir, Name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, fmt.Errorf("stackfile: %w", err)
		}
	}
	tmp, err := temporary(dir, mine)
	if err != nil {
		return nil, err
	}
	defer os.Remove(tmp) //nolint:errcheck // a left-over temporary file hurts nobody
	if err := os.Link(tmp, filepath.Join(dir, Name)); err != nil {
		// Somebody else was quicker: linking fails where renaming would push the other's file aside.
		if old, _, readErr := Read(ctx, dir); readErr == nil {
			return nil, &RunningError{Stack: old}
		}
		return nil, fmt.Errorf("stackfile: %w", err)
	}
	return killed, nil
}

// Write replaces the file.
func Write(dir string, s Stack) error {
	tmp, err := temporary(dir, s)
	if err != nil {
		return err
	}
	if err := os.Rename(tmp, filepath.Join(dir, Name)); err != nil {
		return fmt.Errorf("stackfile: %w", err)
	}
	return nil
}

// Remove ends the claim.
func Remove(dir string) error {
	if err := os.Remove(filepath.Join(dir, Name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("stackfile: %w", err)
	}
	return nil
}

func temporary(dir string, s Stack) (string, error) {
	b, err := json.MarshalIndent(s, "", "  ")
	if err != nil {
		return "", fmt.Errorf("stackfile: %w", err)
	}
	f, err := os.CreateTemp(dir, Name+".*")
	if err != nil {
		return "", fmt.Errorf("stackfile: %w", err)
	}
	_, err = f.Write(append(b, '\n'))
	if err := errors.Join(err, f.Close()); err != nil {
		return "", fmt.Errorf("stackfile: %w", err)
	}
	return f.Name(), nil
}
