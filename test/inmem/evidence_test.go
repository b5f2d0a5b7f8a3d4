package inmem_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"sqlwriter/internal/fault"
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

func TestReadingEvidence(t *testing.T) {
	e := inmem.NewEvidence()
	_, err := e.Read(t.Context(), "a")
	require.Equal(t, fault.Document, fault.KindOf(err))
	require.True(t, fault.Has(err, fault.Gone))
	_, err = e.Read(t.Context(), "a/")
	require.Equal(t, fault.Internal, fault.KindOf(err))
	require.NoError(t, e.Keep(t.Context(), "a", []byte("x")))
	content, err := e.Read(t.Context(), "a")
	require.NoError(t, err)
	require.Equal(t, []byte("x"), content)
	files := e.Files()
	delete(files, "a")
	require.Len(t, e.Files(), 1, "Files gives a copy")
}
