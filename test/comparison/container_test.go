package comparison

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"sqlwriter/internal/commit"
	"sqlwriter/internal/cosmos"
	"sqlwriter/test/emulators/cosmosdb"
	"sqlwriter/test/emulators/cosmosdb/cosmosdbtest"
	"sqlwriter/test/inmem"
)

// container is one with documents, for the product and for other programs.
type container struct {
	documents commit.Documents
	finder    commit.Finder
	// put stores a document whole, remove deletes one.
	put    func(t testing.TB, doc json.RawMessage)
	remove func(t testing.TB, id string)
	// connection is that of an emulator, requests counts the requests that it answered so far.
	connection string
	requests   func() int
}

func inMemoryContainer(_ testing.TB, now func() time.Time) container {
	docs := inmem.NewDocuments(now)
	return container{
		documents: docs, finder: docs.Paged(100), requests: func() int { return 0 },
		put:    func(t testing.TB, doc json.RawMessage) { t.Helper(); require.NoError(t, docs.Put(doc)) },
		remove: func(_ testing.TB, id string) { docs.Delete(id) },
	}
}

const (
	cosmosDatabase  = "db"
	cosmosContainer = "AI_PROCESS_LOGS"
)

// emulated is the emulator with two ranges; every third page of a query is empty.
func emulated(t testing.TB, now func() time.Time) container {
	t.Helper()
	server := cosmosdbtest.Start(t, func(o *cosmosdb.Options) { o.Now = now })
	c, err := cosmos.Open(
		cosmos.Options{Connection: server.ConnectionString, Database: cosmosDatabase, Container: cosmosContainer})
	require.NoError(t, err)
	t.Cleanup(c.Close)
	results := server.Results(t, cosmosDatabase, cosmosContainer)
	return container{
		documents: c, finder: c, connection: server.ConnectionString,
		requests: func() (n int) {
			for _, s := range server.Server.Stats() {
				n += s.Requests
			}
			return n
		},
		put: func(t testing.TB, doc json.RawMessage) {
			t.Helper()
			require.NoError(t, c.Submit(t.Context(), doc, true))
		},
		remove: func(t testing.TB, id string) {
			t.Helper()
			require.NoError(t, results.Delete(t.Context(), id))
		},
	}
}
