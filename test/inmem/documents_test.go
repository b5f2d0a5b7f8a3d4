package inmem_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"sqlwriter/internal/fault"
	"sqlwriter/test/conformance"
	"sqlwriter/test/inmem"
)

func TestDocuments(t *testing.T) {
	conformance.TestDocuments(t, func(*testing.T) conformance.DocumentsHarness {
		docs := inmem.NewDocuments(time.Now)
		return conformance.DocumentsHarness{
			Documents: docs,
			Put:       func(t testing.TB, doc json.RawMessage) { require.NoError(t, docs.Put(doc)) },
			MaxBytes:  2 << 20,
		}
	})
}

func TestPutRefusesWhatTheServiceRefuses(t *testing.T) {
	for _, doc := range []string{`[]`, `{"id":7}`, `{}`, `{"id":""}`, `{"id":"a/b"}`, `{"id":"a#b"}`, `{`} {
		err := inmem.NewDocuments(time.Now).Put(json.RawMessage(doc))
		require.Equal(t, fault.Document, fault.KindOf(err), doc)
	}
}

func TestCreator(t *testing.T) { conformance.TestCreator(t, inmem.NewDocuments(time.Now)) }
