package inmem_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"sqlwriter/test/conformance"
	"sqlwriter/test/inmem"
)

func TestLedger(t *testing.T) {
	conformance.TestLedger(t, func(t testing.TB) conformance.LedgerHarness {
		h := harness(t)
		loser, ok := h.Sink.(*conformance.ReplyLoser)
		require.True(t, ok)
		locks, ok := loser.Sink.(*lockedLines)
		require.True(t, ok)
		return conformance.LedgerHarness{SinkHarness: h, Adoption: locks.Sink}
	})
}

func TestWindow(t *testing.T) {
	conformance.TestWindow(t, func(*testing.T) conformance.WindowHarness {
		docs := inmem.NewDocuments(time.Now)
		return conformance.WindowHarness{Windows: docs, DocumentsHarness: conformance.DocumentsHarness{
			Documents: docs,
			Put:       func(t testing.TB, doc json.RawMessage) { require.NoError(t, docs.Put(doc)) },
		}}
	})
}
