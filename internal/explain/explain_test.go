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
	for code, command := range map[string]string{
		"18456": "migrate up --user", "916": "migrate up --user", "33159": "az login", "40615": "firewall-rule create",
		"403/5301": "cosmosdb sql role assignment create",
	} {
		do, _ := adviceOn(fault.Row{Code: code, Kind: fault.Infrastructure})
		require.Contains(t, do, command, "the way to Azure")
	}
	found, _ = table.Look("timer_silent")
	require.Equal(t, ofAttention, found[0].Adapter)
	found, _ = table.Look("stale")
	require.Equal(t, ofFindings, found[0].Adapter)
}
