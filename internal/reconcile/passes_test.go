package reconcile_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"sqlwriter/internal/run"
)

func TestAConsistentEnvironment(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.findings.adoptedAt = start().Add(-1)
	w.consistent(300)
	row := w.night(run.Filter{Mend: true})
	require.Equal(t, map[string]int{"consistent": 2 * 400}, counted(row), "400 lines of the ledger, and 300 documents with 400 lines")
	require.Empty(t, w.open())
	require.Empty(t, w.mended)
}
