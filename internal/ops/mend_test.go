package ops_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"sqlwriter/internal/fault"
	"sqlwriter/internal/ops"
	"sqlwriter/internal/reconcile"
	"sqlwriter/internal/run"
)

// The timer's runs are started once, and need no reason of a person.
func TestRunsThatMend(t *testing.T) {
	r := newRuns(t)
	r.sink.AddLines(1, 2)
	r.commitAll(result(1, "a", ""), result(2, "b", ""))
	r.loseTracking(1)
	sends := r.queue.Sends()
	for range 2 {
		require.NoError(t, r.ops.Mend(t.Context(), "reconcile-1-rewrite", reconcile.WithRewrite, []string{id(1)}, "1 finding"))
	}
	require.NoError(t, r.ops.Mend(t.Context(), "reconcile-1-write", reconcile.WithWrite, []string{id(1), id(2)}, "2 findings"))
	require.Equal(t, sends+2, r.queue.Sends())
	for runID, want := range map[string][]any{
		"reconcile-1-rewrite": {run.Reindex, 1, "Reconcile", "1 finding", fmt.Sprintf(`{"ids":[%q]}`, id(1))},
		"reconcile-1-write":   {run.Reapply, 2, "Reconcile", "2 findings", fmt.Sprintf(`{"ids":[%q,%q]}`, id(1), id(2))},
	} {
		row, _, err := r.store.Run(t.Context(), runID)
		require.NoError(t, err)
		require.Equal(t, want, []any{row.Kind, row.Named, row.RequestedBy, row.Why, string(row.Filter)})
	}
	require.Equal(t, map[run.Outcome]int{run.DocCommitted: 1}, r.execute(ops.Started{Run: "reconcile-1-rewrite"}))
	l, _ := r.sink.Line(1)
	require.True(t, l.Tracking)
	require.Equal(t, map[run.Outcome]int{run.DocUnchanged: 2}, r.execute(ops.Started{Run: "reconcile-1-write"}))
	require.Equal(t, "internal", string(fault.KindOf(r.ops.Mend(t.Context(), "x", "by magic", nil, ""))))
	require.Len(t, r.audited(run.CodeRunStart), 3, "a drain and two")
	r.runStore.fails = fault.New(fault.Infrastructure, "test", "reset", "the connection was cut")
	require.Error(t, r.ops.Mend(t.Context(), "reconcile-2-write", reconcile.WithWrite, []string{id(1)}, "x"))
}
