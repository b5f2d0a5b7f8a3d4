package cosmos_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"sqlwriter/internal/invoice"
	"sqlwriter/test/conformance"
	"sqlwriter/test/emulators/cosmosdb"
)

func TestWindow(t *testing.T) {
	conformance.TestWindow(t, func(t *testing.T) conformance.WindowHarness {
		server, c := start(t)
		return conformance.WindowHarness{Windows: c, DocumentsHarness: emulated(t, server.ConnectionString, c)}
	})
}

// Over partitions the gateway serves filters and projections only. The emulator refuses anything else too, but not a query
// of one logical partition.
func TestAWindowFetchesOnlyWhatIsRead(t *testing.T) {
	server, c := start(t)
	require.NoError(t, c.Submit(t.Context(), json.RawMessage(`{"id":"a","request_details":{"sys_name":"web"},"raw":"marker"}`), false))
	require.NoError(t, c.Window(t.Context(), "web", 0, 1<<40, func(page []invoice.Projection) (bool, error) {
		require.Len(t, page, 1)
		require.NotContains(t, string(page[0]), "marker")
		return true, nil
	}))
	reads := 0
	for _, s := range server.Server.Stats() {
		if s.Op == cosmosdb.OpRead || s.Op == cosmosdb.OpReadMany {
			reads += s.Requests
		}
	}
	require.Zero(t, reads)
}
