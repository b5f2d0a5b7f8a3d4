package main

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"sqlwriter/cmd/internal/stackfile"
	_ "sqlwriter/internal/app" // the handler is built by go build: without this, go test would answer (cached) after a change of the product
)

// asLocal makes this test binary run as the program.
const asLocal = "LOCAL_TEST_IS_THE_PROGRAM"

func TestMain(m *testing.M) {
	if os.Getenv(asLocal) != "" {
		os.Exit(run())
	}
	os.Exit(m.Run())
}

// program is a started `local`.
type program struct {
	cmd  *exec.Cmd
	log  string
	done chan struct{}
}

func start(t *testing.T, args ...string) *program {
	t.Helper()
	p := &program{log: filepath.Join(t.TempDir(), "out.log"), done: make(chan struct{})}
	out, err := os.Create(p.log)
	require.NoError(t, err)
	p.cmd = exec.CommandContext(context.WithoutCancel(t.Context()), os.Args[0], args...)
	p.cmd.Env = append(os.Environ(), asLocal+"=1", "ONCE=", "FRESH=", "SQL_CONNECTION=")
	p.cmd.Stdout, p.cmd.Stderr = out, out
	require.NoError(t, p.cmd.Start())
	go func() {
		_ = p.cmd.Wait() // the tests check the exit code
		_ = out.Close()
		close(p.done)
	}()
	t.Cleanup(func() { _ = p.cmd.Process.Kill() }) // its servers end with it
	return p
}

func (p *program) waitFor(t *testing.T, text string) {
	t.Helper()
	ended := false
	require.Eventually(t, func() bool {
		select {
		case <-p.done:
			ended = true
		default:
		}
		return ended || strings.Contains(p.output(), text)
	}, 10*time.Minute, 20*time.Millisecond, "%q", text)
	require.Contains(t, p.output(), text)
}

func (p *program) output() string {
	b, _ := os.ReadFile(p.log)
	return string(b)
}

func (p *program) exit(t *testing.T, within time.Duration) int {
	t.Helper()
	select {
	case <-p.done:
		return p.cmd.ProcessState.ExitCode()
	case <-time.After(within):
		t.Fatalf("it is still there after %v:\n%s", within, p.output())
		return 0
	}
}

// everybody returns the stack's servers and the handler.
func everybody(t *testing.T, state string) []stackfile.Process {
	t.Helper()
	s, running, err := stackfile.Read(t.Context(), state)
	require.NoError(t, err)
	require.True(t, running)
	require.Len(t, s.Servers, 4)
	return append(s.Servers, s.Runner)
}

func requireGone(t *testing.T, all []stackfile.Process) {
	t.Helper()
	for _, p := range all {
		require.Eventually(t, func() bool { return !p.Running(t.Context()) }, time.Minute, 10*time.Millisecond, "%s is still there", p.Name)
	}
}

// TestTheStack is `make run` from the outside: the first run, another one beside it, its kill, a run on its state, and
// Ctrl-C.
func TestTheStack(t *testing.T) {
	if testing.Short() {
		t.Skip("starts the whole stack")
	}
	if err := prerequisites(); err != nil {
		t.Skip(err)
	}
	state := t.TempDir()
	first := start(t, "run", "--no-outage", "--state="+state)
	first.waitFor(t, "the stack is running")
	require.Contains(t, first.output(), "EXACT")
	require.Contains(t, first.output(), "516 writes and 2 reads by the handler", "one write per document, none for 13; a read of two ranges only for 15, a second write for 14")
	all := everybody(t, state)

	second := start(t, "run", "--no-outage", "--state="+state)
	require.Equal(t, exitFailed, second.exit(t, time.Minute))
	require.Contains(t, second.output(), "a stack is running already")
	require.True(t, all[0].Running(t.Context()), "it is not disturbed")

	require.NoError(t, first.cmd.Process.Signal(syscall.SIGKILL))
	requireGone(t, all)

	third := start(t, "run", "--no-outage", "--state="+state)
	third.waitFor(t, "the stack is running")
	require.Contains(t, third.output(), "was killed; its state is reused")
	require.Contains(t, third.output(), "from an earlier run: 518 documents")
	require.Contains(t, third.output(), "EXACT")
	all = everybody(t, state)
	require.NoError(t, third.cmd.Process.Signal(os.Interrupt))
	require.Equal(t, exitOK, third.exit(t, time.Minute))
	requireGone(t, all)
	require.NoFileExists(t, filepath.Join(state, stackfile.Name))
}

func TestOnceLeavesNothingBehind(t *testing.T) {
	if testing.Short() {
		t.Skip("starts the whole stack")
	}
	if err := prerequisites(); err != nil {
		t.Skip(err)
	}
	folder := t.TempDir()
	p := start(t, "run", "--once", "--state="+folder)
	require.Equal(t, exitOK, p.exit(t, 10*time.Minute), p.output()) // on a fresh machine the handler is built first
	require.Contains(t, p.output(), "EXACT")
	require.Contains(t, p.output(), "while 200 documents arrived: 200 of them waited, 0 retries spent")
	require.Regexp(t, `all 200 committed \d+\.\d s after SQL came back, 0 retries spent`, p.output())
	left, err := filepath.Glob(filepath.Join(folder, "*"))
	require.NoError(t, err)
	require.Empty(t, left)
}
