package inmem_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"sqlwriter/internal/inmem"
	"sqlwriter/internal/porttest"
	"sqlwriter/internal/writer"
)

func TestBacklog(t *testing.T) {
	porttest.TestBacklog(t, func(*testing.T) porttest.BacklogHarness {
		docs := inmem.NewDocuments(time.Now)
		return porttest.BacklogHarness{Backlog: docs, Restarted: func(testing.TB) writer.Backlog { return docs }, DocumentsHarness: porttest.DocumentsHarness{
			Documents: docs,
			Put:       func(t testing.TB, doc json.RawMessage) { require.NoError(t, docs.Put(doc)) },
		}}
	})
}
