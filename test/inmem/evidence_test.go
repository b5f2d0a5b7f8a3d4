package inmem_test

import (
	"testing"

	"sqlwriter/test/conformance"
	"sqlwriter/test/inmem"
)

func TestEvidence(t *testing.T) {
	conformance.TestEvidence(t, func(*testing.T) conformance.EvidenceHarness {
		e := inmem.NewEvidence()
		return conformance.EvidenceHarness{Evidence: e, Read: func(_ testing.TB, name string) ([]byte, bool) {
			content, ok := e.Files()[name]
			return content, ok
		}}
	})
}
