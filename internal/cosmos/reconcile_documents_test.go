package cosmos_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"sqlwriter/internal/cosmos"
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
