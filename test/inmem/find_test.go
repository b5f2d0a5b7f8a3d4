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

func TestFinder(t *testing.T) {
	conformance.TestFinder(t, func(*testing.T) conformance.FinderHarness {
		docs := inmem.NewDocuments(time.Now)
		return conformance.FinderHarness{
			Finder: docs, Restarted: func(testing.TB) commit.Finder { return docs },
			DocumentsHarness: conformance.DocumentsHarness{
				Documents: docs,
				Put:       func(t testing.TB, doc json.RawMessage) { t.Helper(); require.NoError(t, docs.Put(doc)) },
			},
		}
	})
}
