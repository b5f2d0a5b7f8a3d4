package inmem_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"sqlwriter/internal/reconcile"
	"sqlwriter/test/conformance"
	"sqlwriter/test/inmem"
)

func TestReconcileDocuments(t *testing.T) {
	conformance.TestReconcileDocuments(t, func(*testing.T) conformance.ReconcileDocumentsHarness {
		docs := inmem.NewDocuments(time.Now)
		return conformance.ReconcileDocumentsHarness{
			Reconcile: docs.Reconcile("web"), Restarted: func(testing.TB) reconcile.Documents { return docs.Reconcile("web") },
			DocumentsHarness: conformance.DocumentsHarness{
				Documents: docs,
				Put:       func(t testing.TB, doc json.RawMessage) { t.Helper(); require.NoError(t, docs.Put(doc)) },
			},
		}
	})
}
