package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"sqlwriter/cmd/internal/stackfile"
)

// The commands that connect by themselves have one order of places, and each is used as a whole.
func TestConnectionsComeFromTheFirstPlaceThatHasAny(t *testing.T) {
	b := newBench(t)
	require.Equal(t, exitUsage, b.run(t, "migrate", "status"))
	require.Contains(t, b.errors,
		"error: nothing says how to connect: no --settings, no --app, no SQL_CONNECTION or COSMOS_CONNECTION in the environment, and no running local stack\nhint: `make run`")

	b.stack(t, "another boot", stackfile.Stack{})
	require.Equal(t, exitUsage, b.run(t, "migrate", "status"), "a stack that was killed is none")
	b.runningStack(t, stackfile.Stack{})
	require.Equal(t, exitFailed, b.run(t, "migrate", "status"))
	require.Contains(t, b.errors, "connections: the running local stack, .local/stack.json\n")
	require.Contains(t, b.errors, filepath.Join(b.dir, "stack.db"), "a path is relative to its file")

	b.env["COSMOS_CONNECTION__accountEndpoint"] = "https://x.documents.azure.com"
	require.Equal(t, exitUsage, b.run(t, "migrate", "status"), "never the SQL of another environment")
	require.Contains(t, b.errors, "SQL_CONNECTION is not set (connections: the environment)")
	b.env["SQL_CONNECTION"] = "sqlite:environment.db"
	require.Equal(t, exitFailed, b.run(t, "migrate", "status"))
	require.Contains(t, b.errors, "stat environment.db")

	b.localSettings(t, "file.json", map[string]string{"SQL_CONNECTION": "sqlite:file.db"})
	require.Equal(t, exitFailed, b.run(t, "migrate", "status", "--settings", filepath.Join(b.dir, "file.json")))
	require.Contains(t, b.errors, "connections: --settings\n")
	require.Contains(t, b.errors, filepath.Join(b.dir, "file.db"))
}

func TestWrongSettingsAreUsage(t *testing.T) {
	b := newBench(t)
	file := filepath.Join(b.dir, "x.json")
	for text, says := range map[string]string{
		"": "no such file", "{": "unexpected end of JSON", `{"IsEncrypted":true}`: "is encrypted: decrypt it",
	} {
		if text != "" {
			require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
		}
		require.Equal(t, exitUsage, b.run(t, "migrate", "status", "--settings", file))
		require.Contains(t, b.errors, says)
		require.NoError(t, os.RemoveAll(file))
	}
	require.Equal(t, exitUsage, b.run(t, "status", "--settings", file))
	require.Contains(t, b.errors,
		"--settings: goes with commands that open SQL or Cosmos DB by themselves; this one asks the app")
	require.Equal(t, exitUsage, b.run(t, "migrate", "status", "--app", "https://x"))
	require.Contains(t, b.errors,
		"--app: this command opens SQL and Cosmos DB by itself: it takes the settings of an app in Azure by the app's name")
}

// No error repeats a connection string.
func TestNoErrorHasAPassword(t *testing.T) {
	b := newBench(t)
	for connection, says := range map[string]string{
		"sqlserver://u:hunter2@h":                                      "no database",
		"server=db;password=hunter2":                                   "expected sqlserver://... or sqlite:PATH",
		"sqlserver://u:hunter2@127.0.0.1:1?database=d&encrypt=disable": "SQL Server: ",
	} {
		b.env["SQL_CONNECTION"] = connection
		require.NotEqual(t, exitOK, b.run(t, "migrate", "status"))
		require.Contains(t, b.errors, says)
		require.NotContains(t, b.errors+b.out, "hunter2")
	}
}
