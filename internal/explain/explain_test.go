package explain

import (
	"testing"

	"github.com/stretchr/testify/require"

	"sqlwriter/internal/fault"
)

// Each kind of code is explained, in any case.
func TestCodesAreExplained(t *testing.T) {
	table := New(
		[]fault.Row{
			{Adapter: "a", Code: "paused", Kind: fault.Infrastructure}, {Adapter: "a", Code: "x", Kind: fault.Document},
		})
	require.True(t, table.Names("paused"))
	require.False(t, table.Names("nothing"))
	found, _ := table.Look("PAUSED")
	require.Len(t, found, 1)
	require.Contains(t, found[0].Do, "flow resume")
	found, _ = table.Look("document")
	require.Equal(t, "x", found[0].Code, "a kind names all its codes")
	require.Contains(t, found[0].Do, "--error-code x")
	found, _ = table.Look("timer_silent")
	require.Equal(t, ofAttention, found[0].Adapter)
	found, _ = table.Look("stale")
	require.Equal(t, ofFindings, found[0].Adapter)
}
