package inmem_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"sqlwriter/internal/commit"
	"sqlwriter/test/conformance"
	"sqlwriter/test/inmem"
)

func TestBacklog(t *testing.T) {
	conformance.TestBacklog(t, func(*testing.T) conformance.BacklogHarness {
		docs := inmem.NewDocuments(time.Now)
		return conformance.BacklogHarness{Backlog: docs, Restarted: func(testing.TB) commit.Backlog { return docs }, DocumentsHarness: conformance.DocumentsHarness{
			Documents: docs,
			Put:       func(t testing.TB, doc json.RawMessage) { require.NoError(t, docs.Put(doc)) },
		}}
	})
}
