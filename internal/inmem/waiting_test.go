package inmem_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"sqlwriter/internal/inmem"
	"sqlwriter/internal/porttest"
)

func TestBacklog(t *testing.T) {
	porttest.TestBacklog(t, func(*testing.T) porttest.BacklogHarness {
		docs := inmem.NewDocuments(time.Now)
		return porttest.BacklogHarness{Backlog: docs, DocumentsHarness: porttest.DocumentsHarness{
			Documents: docs,
			Put:       func(t testing.TB, doc json.RawMessage) { require.NoError(t, docs.Put(doc)) },
		}}
	})
}
