package main

import (
	"context"
	"errors"
	"io"
	"os/exec"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestRun: what a program prints comes back, and what it said when it failed.
func TestRun(t *testing.T) {
	dir := t.TempDir()
	out, err := run(t.Context(), program{dir: dir}, "sh", "-c", "pwd; echo aside >&2")
	require.NoError(t, err)
	require.Equal(t, dir+"\n", string(out))
	for _, how := range []program{{}, {shown: true}} {
		_, err = run(t.Context(), how, "sh", "-c", "echo out; echo \"run 'az login'\" >&2; exit 3")
		var failed *failure
		require.ErrorAs(t, err, &failed)
		require.Equal(t, "out\nrun 'az login'\n", failed.said)
		require.ErrorContains(t, err, "nobody is signed in: az login")
		require.Equal(t, !how.shown, len(err.Error()) > len("sh: exit status 3\nnobody is signed in: az login"))
	}
	t.Setenv("PATH", dir)
	_, err = run(t.Context(), program{}, "func")
	require.ErrorContains(t, err, "npm install -g azure-functions-core-tools@4")
	require.True(t, errors.Is(err, exec.ErrNotFound))
	require.False(t, ask(t.Context(), "yes? "), "a test has no terminal")
}

// TestYes: one word is a yes, and who interrupts is not asked for a line first.
func TestYes(t *testing.T) {
	for line, want := range map[string]bool{"yes\n": true, " yes": true, "no\n": false, "\n": false, "": false} {
		require.Equal(t, want, yes(t.Context(), strings.NewReader(line)), "%q", line)
	}
	ctx, stop := context.WithCancel(t.Context())
	stop()
	silent, typist := io.Pipe()
	require.False(t, yes(ctx, silent))
	require.NoError(t, typist.Close())
}
