package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// The same commit has the same share, and every part has its turn.
func TestTheShareIsDrawnFromTheCommit(t *testing.T) {
	const parts = 6
	seen := map[int]bool{}
	for n := range 100 {
		by := fmt.Sprint("commit ", n)
		part := draw(by, parts)
		require.Equal(t, part, draw(by, parts))
		require.GreaterOrEqual(t, part, 0)
		require.Less(t, part, parts)
		seen[part] = true
	}
	require.Len(t, seen, parts)
}

// A mutant whose text is no longer there proves nothing; this is seen at once, and not when all of them are run.
func TestEveryMutantStillApplies(t *testing.T) {
	names := map[string]bool{}
	for _, m := range all() {
		require.False(t, names[m.name], "%s stands twice", m.name)
		names[m.name] = true
		text, err := os.ReadFile(filepath.Join("../..", m.file))
		require.NoError(t, err)
		require.Equal(t, 1, strings.Count(string(text), m.old), "%s: %s", m.name, m.file)
		require.NotEqual(t, m.old, m.new, m.name)
	}
	require.GreaterOrEqual(t, len(names), 30)
}
