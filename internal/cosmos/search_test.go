package cosmos_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"sqlwriter/internal/cosmos"
	"sqlwriter/internal/ops"
	"sqlwriter/test/conformance"
	"sqlwriter/test/emulators/cosmosdb"
	"sqlwriter/test/emulators/cosmosdb/cosmosdbtest"
)

func TestSearch(t *testing.T) {
	for name, change := range map[string]func(*cosmosdb.Options){
		"two ranges, every third page empty":   func(*cosmosdb.Options) {},
		"seven ranges, every other page empty": func(o *cosmosdb.Options) { o.Ranges, o.EmptyPages = 7, 2 },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			conformance.TestSearch(t, func(t *testing.T) conformance.SearchHarness {
				server := cosmosdbtest.Start(t, change)
				open := func(t testing.TB) *cosmos.Container {
					t.Helper()
					c, err := cosmos.Open(cosmos.Options{Connection: server.ConnectionString, Database: database, Container: container})
					require.NoError(t, err)
					t.Cleanup(c.Close)
					return c
				}
				c := open(t)
				server.Container(t, database, container, "/id") // a request may have an id that no key can have
				return conformance.SearchHarness{Search: c, Restarted: func(t testing.TB) ops.DocumentSearch { t.Helper(); return open(t) }, DocumentsHarness: documentsOf(c)}
			})
		})
	}
}

func TestSearchOnARealAccount(t *testing.T) {
	needRealAccount(t)
	conformance.TestSearch(t, func(t *testing.T) conformance.SearchHarness {
		c := onRealAccount(t)
		return conformance.SearchHarness{Search: c, Restarted: func(testing.TB) ops.DocumentSearch { return c }, DocumentsHarness: documentsOf(c)}
	})
}
