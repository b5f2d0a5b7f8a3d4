package run_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"sqlwriter/internal/run"
	"sqlwriter/test/conformance"
)

func TestTheTableOfStates(t *testing.T) {
	seen := map[run.Transition]bool{}
	for _, row := range run.Transitions() {
		require.False(t, seen[row], "%+v stands there twice", row)
		seen[row] = true
		require.Contains(t, run.BatchStatuses(), row.From)
		require.Contains(t, run.BatchStatuses(), row.To)
		require.NotEqual(t, run.Completed, row.From, "what is completed stays so")
	}
	require.False(t, conformance.AllowedChange(run.Processing, run.Queued), "a late queued never regresses")
	require.False(t, conformance.AllowedChange(run.Failed, run.Processing), "a failed batch is requeued first")
	require.False(t, conformance.AllowedChange(run.Queued, run.Completed))
	for _, s := range run.BatchStatuses() {
		require.Equal(t, s != run.Completed && s != run.Failed, s.Open())
		if s.Open() {
			require.True(t, conformance.AllowedChange(s, run.Failed), "%s can end", s)
			require.True(t, conformance.AllowedChange(s, run.Processing), "%s can be worked on", s)
		}
	}
}
