package inmem_test

import (
	"testing"

	"sqlwriter/test/conformance"
	"sqlwriter/test/inmem"
)

func TestReconcileEvidence(t *testing.T) {
	conformance.TestReconcileEvidence(t, func(*testing.T) conformance.ReconcileEvidenceHarness {
		e := inmem.NewEvidence()
		return conformance.ReconcileEvidenceHarness{
			Evidence: e,
			Read: func(_ testing.TB, name string) ([]byte, bool) {
				content, ok := e.Files()[name]
				return content, ok
			},
		}
	})
}
