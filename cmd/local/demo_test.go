package main

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"sqlwriter/cmd/internal/stackfile"
	"sqlwriter/internal/config"
)

// The demo works on the local stack only.
func TestDemoWantsARunningStack(t *testing.T) {
	dir := t.TempDir()
	_, err := findStack(t.Context(), dir)
	require.EqualError(t, err, "demo needs the local stack: start it with make run")

	settings := filepath.Join(dir, "settings.json")
	require.NoError(t, writeSettings(settings, map[string]string{config.SQLConnection: "sqlite:x.db"}))
	runner, err := stackfile.Identify(t.Context(), "run", os.Getpid())
	require.NoError(t, err)
	stack := stackfile.Stack{Runner: runner, Settings: settings, Functions: "http://127.0.0.1:7071", Since: time.Now()}
	require.NoError(t, stackfile.Write(dir, stack))
	d, err := findStack(t.Context(), dir)
	require.NoError(t, err)
	require.Equal(t, "sqlite:x.db", d.config.SQL.Connection.Reveal())

	stack.Runner.Started = "another boot"
	require.NoError(t, stackfile.Write(dir, stack))
	_, err = findStack(t.Context(), dir)
	require.ErrorContains(t, err, "demo needs the local stack", "it was killed")
}
