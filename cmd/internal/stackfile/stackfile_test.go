package stackfile_test

import (
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"sqlwriter/cmd/internal/stackfile"
)

func me(t *testing.T) stackfile.Stack {
	t.Helper()
	p, err := stackfile.Identify(t.Context(), "runner", os.Getpid())
	require.NoError(t, err)
	return stackfile.Stack{Runner: p, Cosmos: "http://127.0.0.1:8081", Since: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)}
}

func TestARunningStackIsNotDisturbed(t *testing.T) {
	dir := t.TempDir()
	killed, err := stackfile.Claim(t.Context(), dir, me(t))
	require.NoError(t, err)
	require.Nil(t, killed)

	_, err = stackfile.Claim(t.Context(), dir, me(t))
	var running *stackfile.RunningError
	require.ErrorAs(t, err, &running)
	require.Equal(t, "http://127.0.0.1:8081", running.Stack.Cosmos)

	require.NoError(t, stackfile.Remove(dir))
	_, err = stackfile.Claim(t.Context(), dir, me(t))
	require.NoError(t, err)
}

func TestAStackThatWasKilledIsRecognised(t *testing.T) {
	cmd := exec.CommandContext(t.Context(), "sleep", "60")
	require.NoError(t, cmd.Start())
	p, err := stackfile.Identify(t.Context(), "runner", cmd.Process.Pid)
	require.NoError(t, err)
	require.True(t, p.Running(t.Context()))
	dir := t.TempDir()
	require.NoError(t, stackfile.Write(dir, stackfile.Stack{Runner: p}))

	_, err = stackfile.Claim(t.Context(), dir, me(t))
	var running *stackfile.RunningError
	require.ErrorAs(t, err, &running)

	require.NoError(t, cmd.Process.Kill())
	_ = cmd.Wait()
	_, alive, err := stackfile.Read(t.Context(), dir)
	require.NoError(t, err)
	require.False(t, alive)
	killed, err := stackfile.Claim(t.Context(), dir, me(t))
	require.NoError(t, err)
	require.Equal(t, p, killed.Runner, "its servers may still be there")
}

func TestAProcessIdThatWasUsedAgainIsNotTheOldProcess(t *testing.T) {
	s := me(t)
	require.True(t, s.Runner.Running(t.Context()))
	s.Runner.Started = "an earlier boot/12345" // the same id, but another process
	require.False(t, s.Runner.Running(t.Context()))
	dir := t.TempDir()
	require.NoError(t, stackfile.Write(dir, s))
	_, err := stackfile.Claim(t.Context(), dir, me(t))
	require.NoError(t, err)
}

func TestAnUnreadableFileIsReplaced(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, stackfile.Name), []byte("{"), 0o600))
	_, _, err := stackfile.Read(t.Context(), dir)
	require.ErrorContains(t, err, stackfile.Name)
	_, err = stackfile.Claim(t.Context(), dir, me(t))
	require.NoError(t, err)
}

func TestWithoutAFileThereIsNoStack(t *testing.T) {
	_, _, err := stackfile.Read(t.Context(), t.TempDir())
	require.ErrorIs(t, err, fs.ErrNotExist)
}

func TestOfManyConcurrentClaimsOneWins(t *testing.T) {
	dir, mine := t.TempDir(), me(t)
	var wg sync.WaitGroup
	won := make(chan struct{}, 20)
	for range 20 {
		wg.Go(func() {
			if _, err := stackfile.Claim(t.Context(), dir, mine); err == nil {
				won <- struct{}{}
			}
		})
	}
	wg.Wait()
	require.Len(t, won, 1)
	left, err := filepath.Glob(filepath.Join(dir, "*"))
	require.NoError(t, err)
	require.Len(t, left, 1, "no temporary file stays")
}
