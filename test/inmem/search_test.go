package inmem_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"sqlwriter/internal/ops"
	"sqlwriter/test/conformance"
	"sqlwriter/test/inmem"
)

func TestSearch(t *testing.T) {
	conformance.TestSearch(t, func(*testing.T) conformance.SearchHarness {
		docs := inmem.NewDocuments(time.Now)
		return conformance.SearchHarness{
			Search: docs, Restarted: func(testing.TB) ops.DocumentSearch { return docs },
			DocumentsHarness: conformance.DocumentsHarness{
				Documents: docs,
				Put:       func(t testing.TB, doc json.RawMessage) { require.NoError(t, docs.Put(doc)) },
			},
		}
	})
}
