package inmem_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"sqlwriter/test/conformance"
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
