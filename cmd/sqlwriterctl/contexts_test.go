package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestAContextIsUsedFromAnyFolder(t *testing.T) {
	o, _ := inMemory(t)
	server := host(t, o, "key-marker")
	b := newBench(t)
	settings := filepath.Join(b.dir, "elsewhere.json")
	b.localSettings(t, "elsewhere.json", map[string]string{"SQL_CONNECTION": "sqlite:nowhere.db", "COSMOS_CONNECTION": "x"})
	require.Equal(t, exitOK, b.run(t, "context", "add", "prod", "--app", server.URL, "--key-env", "PROD_KEY"), b.errors)
	require.Equal(t, exitOK, b.run(t, "context", "add", "file", "--settings", settings), b.errors)
	require.Equal(t, exitOK, b.run(t, "context", "list"), b.errors)
	require.Regexp(t, `\*\s+prod\s+`+server.URL+`, key of PROD_KEY\n`, b.out, "the first one is the current one")
	path := filepath.Join(b.dir, "config", "sqlwriterctl", "contexts.json")
	info, err := os.Stat(path)
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o600), info.Mode().Perm())

	b.env["SQLWRITER_KEY"] = "key-marker"
	require.Equal(t, exitUsage, b.run(t, "status"), "a context has a key of its own")
	require.Contains(t, b.errors, "the environment variable PROD_KEY is not set")
	delete(b.env, "SQLWRITER_KEY")
	b.env["PROD_KEY"] = "key-marker"
	require.Equal(t, exitOK, b.run(t, "status"), b.errors)
	require.Contains(t, b.errors, "connections: the app of context prod, with a function key")
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	require.NotContains(t, string(text), "key-marker", "the file holds no secret")
	require.Equal(t, exitUsage, b.run(t, "migrate", "status"))
	require.Contains(t, b.errors, "context prod names an app, and this command needs connections")

	b.localSettings(t, settingsFileName, map[string]string{"SQL_CONNECTION": "sqlite:x.db"})
	require.Equal(t, exitOK, b.run(t, "status"), "a context comes before files of the folder")
	require.Equal(t, exitOK, b.run(t, "context", "use", "file"), b.errors)
	require.Equal(t, exitFailed, b.run(t, "migrate", "status"))
	require.Contains(t, b.errors, "connections: context file")
	require.Equal(t, exitOK, b.run(t, "status", "--context", "prod"), "a flag comes first")
	b.env["SQLWRITER_CONTEXT"] = "prod"
	require.Equal(t, exitOK, b.run(t, "status"), b.errors)
	b.env["SQLWRITER_CONTEXT"] = "prad"
	require.Equal(t, exitUsage, b.run(t, "status"))
	require.Contains(t, b.errors, `SQLWRITER_CONTEXT: unknown value "prad"; did you mean prod?`)
	delete(b.env, "SQLWRITER_CONTEXT")
	b.env["SQL_CONNECTION"] = "sqlite:of-the-environment.db"
	require.Equal(t, exitFailed, b.run(t, "migrate", "status"))
	require.Contains(t, b.errors, "connections: the environment")
	delete(b.env, "SQL_CONNECTION")

	require.Equal(t, exitOK, b.run(t, "context", "remove", "file"), b.errors)
	require.Equal(t, exitOK, b.run(t, "context", "list", "-q"), b.errors)
	require.Equal(t, "prod\n", b.out)
	require.Equal(t, exitFailed, b.run(t, "migrate", "status"))
	require.Contains(t, b.errors, "connections: "+settingsFileName, "no context is the current one any more")
	for _, args := range [][]string{
		{"use", "nobody"},
		{"remove", "nobody"},
		{"add", "x"},
		{"add", "x", "--app", "http://example.com", "--key-env", "K"},
		{"add", "x", "--app", "https://example.com"},
		{"add", "x", "--app", "https://example.com", "--key-env", "K", "--audience", "api://x"},
		{"add", "x", "--app", "https://example.com", "--key", "secret"},
		{"add", "x", "--settings", "nowhere.json"},
		{"add", "a/b", "--app", "https://example.com", "--key-env", "K"},
	} {
		require.Equal(t, exitUsage, b.run(t, append([]string{"context"}, args...)...), "%v: %s", args, b.errors)
	}
}
