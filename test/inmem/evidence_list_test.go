package inmem_test

import (
	"testing"

	"sqlwriter/test/conformance"
	"sqlwriter/test/inmem"
)

func TestEvidenceFiles(t *testing.T) {
	conformance.TestEvidenceFiles(t, func(*testing.T) conformance.EvidenceFilesHarness {
		e := inmem.NewEvidence()
		return conformance.EvidenceFilesHarness{
			Evidence: e,
			Read: func(_ testing.TB, name string) ([]byte, bool) {
				content, ok := e.Files()[name]
				return content, ok
			},
		}
	})
}
