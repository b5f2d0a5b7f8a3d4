package inmem_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"sqlwriter/internal/commit"
	"sqlwriter/internal/invoice"
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

// A page covers a fixed number of documents, so that use cases meet the empty pages of a service. It has the members
// that were asked for.
func TestPagesAreAsFullAsItHappens(t *testing.T) {
	docs := inmem.NewDocuments(time.Now)
	for _, doc := range []string{
		`{"id":"a","request_details":{"sys_name":"web"},"sql_writer":{"status":"committed"}}`,
		`{"id":"b","request_details":{"sys_name":"web"},"sql_writer":{"status":"committed"}}`,
		`{"id":"c","request_details":{"sys_name":"web"},"sql_writer":{"status":"failed","attempts":[{"at":"x","error":"y"}]}}`,
	} {
		require.NoError(t, docs.Put(json.RawMessage(doc)))
	}
	s := docs.Paged(2)
	q := commit.Query{
		SysName: "web", Statuses: []invoice.Status{invoice.Failed}, To: 1 << 40, Size: 1000,
		Members: []string{"id", "sql_writer.status", "post-processing", "invoice_details_from_rpa.IVCE_DTL_UID"},
	}
	page, err := s.Find(t.Context(), q, "")
	require.NoError(t, err)
	require.Empty(t, page.Documents)
	require.NotEmpty(t, page.Next)
	page, err = s.Find(t.Context(), q, page.Next)
	require.NoError(t, err)
	require.Len(t, page.Documents, 1)
	require.JSONEq(t, `{"id":"c","sql_writer":{"status":"failed"},"invoice_details_from_rpa":{}}`,
		string(page.Documents[0]))
	require.Empty(t, page.Next)
}
