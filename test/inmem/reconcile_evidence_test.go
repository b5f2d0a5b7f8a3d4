package inmem_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"sqlwriter/internal/commit"
	"sqlwriter/internal/invoice"
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
			Report: func(_ testing.TB, name string) ([]byte, string, bool) {
				r, ok := e.Reports()[name]
				return r.Content, r.ContentType, ok
			},
		}
	})
}

func TestTheNewestEvidenceIsTheLatestWhateverItsName(t *testing.T) {
	now := time.Date(2025, 12, 17, 16, 0, 0, 0, time.UTC)
	e := inmem.NewEvidenceOn(func() time.Time { return now })
	d := invoice.Document{ID: "a", Main: 1, Hash: "f"}
	for _, hash := range []string{"f", "a", "c"} {
		d.Hash = hash
		now = now.Add(time.Hour)
		require.NoError(t, e.Keep(t.Context(), commit.EvidenceFolder(d, 0)+"/"+commit.EvidenceMetadata, nil))
	}
	newest, ok, err := e.Newest(t.Context(), d)
	require.NoError(t, err)
	require.True(t, ok)
	require.Equal(t, commit.EvidenceFolder(d, 0), newest.Folder)
	require.Equal(t, now, newest.At)
}
