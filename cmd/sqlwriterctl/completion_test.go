package main

import (
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// completed are the candidates for the last word.
func (b *bench) completed(t *testing.T, typed ...string) []string {
	t.Helper()
	require.Equal(t, exitOK, b.run(t, append([]string{completeWord, "--"}, typed...)...))
	var words []string
	for line := range strings.Lines(b.out) {
		word, _, _ := strings.Cut(strings.TrimSpace(line), "\t")
		words = append(words, word)
	}
	return words
}

func TestCompletion(t *testing.T) {
	b := newBench(t)
	for typed, want := range map[string][]string{
		"run st":           {"start"},
		"document ":        {"list", "why", "retry", "submit", "mark-committed"},
		"run start ":       {"drain", "replay", "reindex", "reapply"},
		"-o ":              {"table", "json"},
		"completion z":     {"zsh"},
		"flow resume --fo": {"--force"},
		"nonsense st":      nil,
	} {
		require.Subset(t, b.completed(t, strings.Split(typed, " ")...), want, typed)
	}
	require.Equal(t, []string{"sqlserver", "sqlite"}, b.completed(t, "migrate", "script", "--engine", "sql"))
	require.Contains(t, b.completed(t, "status", "--"), "--check")
	require.Contains(t, b.completed(t), "document")
}

// The script is loaded by a real bash, which calls the tool for the words.
func TestCompletionInBash(t *testing.T) {
	if testing.Short() {
		t.Skip("it builds the tool")
	}
	bash, err := exec.LookPath("bash")
	if err != nil {
		t.Skip("no bash")
	}
	bin := t.TempDir()
	build := exec.CommandContext(t.Context(), "go", "build", "-trimpath", "-buildvcs=false", "-o",
		filepath.Join(bin, "sqlwriterctl"), ".")
	build.Env = append(build.Environ(), "CGO_ENABLED=0")
	out, err := build.CombinedOutput()
	require.NoError(t, err, string(out))
	script := `PATH="` + bin +
		`:$PATH"; source <(sqlwriterctl completion bash); COMP_WORDS=(sqlwriterctl run start r); COMP_CWORD=3; _sqlwriterctl; echo "${COMPREPLY[@]}"`
	got, err := exec.CommandContext(t.Context(), bash, "--norc", "-c", script).Output()
	require.NoError(t, err)
	require.Equal(t, "replay reindex reapply\n", string(got))
}
