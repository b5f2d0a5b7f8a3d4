package run_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"sqlwriter/internal/run"
	"sqlwriter/test/conformance"
)

func TestTheTableOfStates(t *testing.T) {
	require.False(t, conformance.AllowedChange(run.Processing, run.Queued), "a late queued never regresses")
	require.False(t, conformance.AllowedChange(run.Failed, run.Processing), "a failed batch is requeued first")
	require.False(t, conformance.AllowedChange(run.Queued, run.Completed))
	for _, s := range run.BatchStatuses() {
		require.Equal(t, s != run.Completed && s != run.Failed, s.Open())
		require.False(t, conformance.AllowedChange(run.Completed, s), "what is completed stays so")
		if s.Open() {
			require.True(t, conformance.AllowedChange(s, run.Failed), "%s can end", s)
			require.True(t, conformance.AllowedChange(s, run.Processing), "%s can be worked on", s)
		}
	}
}
