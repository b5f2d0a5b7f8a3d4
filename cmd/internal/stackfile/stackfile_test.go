package stackfile_test

import (
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"sqlwriter/cmd/internal/stackfile"
)

func TestARunningStackIsNotDisturbed(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "state")
	mine, err := stackfile.Claim(t.Context(), dir)
	require.NoError(t, err)
	require.Equal(t, os.Getpid(), mine.Runner.PID)
	mine.Functions = "http://127.0.0.1:7071"
	require.NoError(t, stackfile.Write(dir, mine))

	_, err = stackfile.Claim(t.Context(), dir)
	var running *stackfile.RunningError
	require.ErrorAs(t, err, &running)
	require.Equal(t, mine.Functions, running.Stack.Functions)

	require.NoError(t, stackfile.Remove(dir))
	require.NoError(t, stackfile.Remove(dir), "twice does no harm")
	_, err = stackfile.Claim(t.Context(), dir)
	require.NoError(t, err)
	left, err := filepath.Glob(filepath.Join(dir, "*"))
	require.NoError(t, err)
	require.Len(t, left, 1, "no temporary file stays")
}

func TestAStackThatWasKilledIsRecognised(t *testing.T) {
	cmd := exec.CommandContext(t.Context(), "sleep", "60")
	require.NoError(t, cmd.Start())
	p, err := stackfile.Identify(t.Context(), "runner", cmd.Process.Pid)
	require.NoError(t, err)
	require.True(t, p.Running(t.Context()))
	dir := t.TempDir()
	require.NoError(t, stackfile.Write(dir, stackfile.Stack{Runner: p}))
	_, err = stackfile.Claim(t.Context(), dir)
	var running *stackfile.RunningError
	require.ErrorAs(t, err, &running)

	require.NoError(t, cmd.Process.Kill())
	_ = cmd.Wait()
	_, alive, err := stackfile.Read(t.Context(), dir)
	require.NoError(t, err)
	require.False(t, alive)
	_, err = stackfile.Claim(t.Context(), dir)
	require.NoError(t, err)
}

func TestAProcessIdThatWasUsedAgainIsNotTheOldProcess(t *testing.T) {
	p, err := stackfile.Identify(t.Context(), "runner", os.Getpid())
	require.NoError(t, err)
	require.True(t, p.Running(t.Context()))
	p.Started = "an earlier boot/12345" // the same id, but another process
	require.False(t, p.Running(t.Context()))
	dir := t.TempDir()
	require.NoError(t, stackfile.Write(dir, stackfile.Stack{Runner: p}))
	_, err = stackfile.Claim(t.Context(), dir)
	require.NoError(t, err)
}

func TestAnUnreadableFileIsReplaced(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, stackfile.Name), []byte("{"), 0o600))
	_, _, err := stackfile.Read(t.Context(), dir)
	require.ErrorContains(t, err, stackfile.Name)
	_, err = stackfile.Claim(t.Context(), dir)
	require.NoError(t, err)
}

func TestWithoutAFileThereIsNoStack(t *testing.T) {
	_, _, err := stackfile.Read(t.Context(), t.TempDir())
	require.ErrorIs(t, err, fs.ErrNotExist)
}
