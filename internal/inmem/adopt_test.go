package inmem_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"sqlwriter/internal/inmem"
	"sqlwriter/internal/porttest"
)

func TestLedger(t *testing.T) {
	porttest.TestLedger(t, func(t testing.TB) porttest.LedgerHarness {
		h := harness(t)
		loser, ok := h.Sink.(*porttest.ReplyLoser)
		require.True(t, ok)
		locks, ok := loser.Sink.(*lockedLines)
		require.True(t, ok)
		return porttest.LedgerHarness{SinkHarness: h, Adoption: locks.Sink}
	})
}

func TestWindow(t *testing.T) {
	porttest.TestWindow(t, func(*testing.T) porttest.WindowHarness {
		docs := inmem.NewDocuments(time.Now)
		return porttest.WindowHarness{Windows: docs, DocumentsHarness: porttest.DocumentsHarness{
			Documents: docs,
			Put:       func(t testing.TB, doc json.RawMessage) { require.NoError(t, docs.Put(doc)) },
		}}
	})
}
