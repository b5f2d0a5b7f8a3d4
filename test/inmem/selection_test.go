package inmem_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"sqlwriter/internal/invoice"
	"sqlwriter/internal/run"
	"sqlwriter/test/conformance"
	"sqlwriter/test/inmem"
)

func TestSelection(t *testing.T) {
	conformance.TestSelection(t, func(*testing.T) conformance.SelectionHarness {
		docs := inmem.NewDocuments(time.Now)
		const pageSize = 400
		return conformance.SelectionHarness{
			Selection: docs.Selection(pageSize),
			Restarted: func(testing.TB) run.Selection { return docs.Selection(pageSize) },
			DocumentsHarness: conformance.DocumentsHarness{
				Documents: docs,
				Put:       func(t testing.TB, doc json.RawMessage) { require.NoError(t, docs.Put(doc)) },
			},
		}
	})
}

// A page covers a fixed number of documents, so that use cases meet the empty pages of a service.
func TestPagesOfASelectionAreAsFullAsItHappens(t *testing.T) {
	docs := inmem.NewDocuments(time.Now)
	for _, doc := range []string{
		`{"id":"a","request_details":{"sys_name":"web"},"sql_writer":{"status":"committed"}}`,
		`{"id":"b","request_details":{"sys_name":"web"},"sql_writer":{"status":"committed"}}`,
		`{"id":"c","request_details":{"sys_name":"web"},"sql_writer":{"status":"failed"}}`,
	} {
		require.NoError(t, docs.Put(json.RawMessage(doc)))
	}
	s, q := docs.Selection(2), run.Query{SysName: "web", Statuses: []invoice.Status{invoice.Failed}, To: 1 << 40}
	found, next, err := s.Page(t.Context(), q, "")
	require.NoError(t, err)
	require.Empty(t, found)
	require.NotEmpty(t, next)
	found, next, err = s.Page(t.Context(), q, next)
	require.NoError(t, err)
	require.Len(t, found, 1)
	require.Empty(t, next)
}
