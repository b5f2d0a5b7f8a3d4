package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// A mutant whose text is no longer there proves nothing; this is seen at once, and not when all of them are run.
func TestEveryMutantStillApplies(t *testing.T) {
	names := map[string]bool{}
	for _, m := range table() {
		require.False(t, names[m.name], "%s stands twice", m.name)
		names[m.name] = true
		text, err := os.ReadFile(filepath.Join("../..", m.file))
		require.NoError(t, err)
		require.Equal(t, 1, strings.Count(string(text), m.old), "%s: %s", m.name, m.file)
		require.NotEqual(t, m.old, m.new, m.name)
	}
	require.GreaterOrEqual(t, len(names), 50, "a rule has lost its mutant")
	require.LessOrEqual(t, len(names), 71, "`make check` runs all of them: one for each rule, none for a detail")
}
