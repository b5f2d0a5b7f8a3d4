package cosmos_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"sqlwriter/internal/cosmos"
	"sqlwriter/internal/invoice"
	"sqlwriter/internal/reconcile"
	"sqlwriter/test/conformance"
	"sqlwriter/test/emulators/cosmosdb"
	"sqlwriter/test/emulators/cosmosdb/cosmosdbtest"
)

func TestReconcileDocuments(t *testing.T) {
	for name, change := range map[string]func(*cosmosdb.Options){
		"two ranges, every third page empty":   func(*cosmosdb.Options) {},
		"seven ranges, every other page empty": func(o *cosmosdb.Options) { o.Ranges, o.EmptyPages = 7, 2 },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			conformance.TestReconcileDocuments(t, func(t *testing.T) conformance.ReconcileDocumentsHarness {
				server := cosmosdbtest.Start(t, change)
				open := func(t testing.TB) *cosmos.Container {
					t.Helper()
					c, err := cosmos.Open(cosmos.Options{Connection: server.ConnectionString, Database: database, Container: container})
					require.NoError(t, err)
					t.Cleanup(c.Close)
					return c
				}
				c := open(t)
				server.Results(t, database, container)
				other := open(t)
				return conformance.ReconcileDocumentsHarness{
					Reconcile: c.Reconcile("web"), Restarted: func(testing.TB) reconcile.Documents { return other.Reconcile("web") },
					DocumentsHarness: emulated(t, server.ConnectionString, c),
				}
			})
		})
	}
}

func TestReconcileDocumentsOnARealAccount(t *testing.T) {
	needRealAccount(t)
	conformance.TestReconcileDocuments(t, func(t *testing.T) conformance.ReconcileDocumentsHarness {
		c := onRealAccount(t)
		return conformance.ReconcileDocumentsHarness{
			Reconcile: c.Reconcile("web"), Restarted: func(testing.TB) reconcile.Documents { return c.Reconcile("web") }, DocumentsHarness: documentsOf(c),
		}
	})
}

func TestWhatChangedComesWithoutWhatNobodyReads(t *testing.T) {
	_, c := start(t)
	require.NoError(t, c.Submit(t.Context(), json.RawMessage(`{"id":"a","request_details":{"sys_name":"web"},"raw":"marker"}`), false))
	var found []invoice.Projection
	for continuation, more := "", true; more; more = continuation != "" { // pages may be empty
		page, next, _, err := c.Reconcile("web").Changed(t.Context(), 0, 1<<40, 10, continuation)
		require.NoError(t, err)
		found, continuation = append(found, page...), next
	}
	require.Len(t, found, 1)
	require.NotContains(t, string(found[0]), "marker")
}
