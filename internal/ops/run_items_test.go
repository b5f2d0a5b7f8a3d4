package ops_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"sqlwriter/internal/breaker"
	"sqlwriter/internal/fault"
	"sqlwriter/internal/invoice"
	"sqlwriter/internal/ops"
	"sqlwriter/internal/run"
)

func TestRunItemsComeInPages(t *testing.T) {
	r := newRuns(t)
	r.fill(1)
	begun := r.start(replayAll()).Run
	r.handOff(begun, 2, 5, 2)
	seen := map[string]run.ItemOutcome{}
	q := ops.ItemQuery{Run: begun, Limit: 3}
	for pages := 0; ; pages++ {
		require.Less(t, pages, 10)
		page := must(r.ops.RunItems(t.Context(), q))(t)
		for _, i := range page.Items {
			require.NotContains(t, seen, i.Document)
			seen[i.Document] = i
		}
		if q.Page = page.Next; q.Page == "" {
			break
		}
	}
	require.Len(t, seen, 10)
	require.Equal(t, run.ItemOutcome{Document: "doc-1-0", Outcome: invoice.OutcomeApplied, Number: 1}, seen["doc-1-0"])
	require.Equal(t, run.ItemOutcome{Document: "doc-2-0", Number: 2}, seen["doc-2-0"])
	_, err := r.ops.RunItems(t.Context(), ops.ItemQuery{Run: "nobody"})
	require.Equal(t, ops.NotFound, refusal(err))
	_, err = r.ops.RunItems(t.Context(), ops.ItemQuery{Run: begun, Limit: 1001})
	require.Equal(t, ops.Usage, refusal(err))
	_, err = r.ops.RunItems(t.Context(), ops.ItemQuery{})
	require.Equal(t, ops.Usage, refusal(err))
}

func TestReports(t *testing.T) {
	r := newRuns(t)
	table := must(r.ops.Report(t.Context(), "runs"))(t)
	require.Equal(t, run.Table{Columns: []string{"run"}, Rows: [][]any{{"a"}}}, table)
	_, err := r.ops.Report(t.Context(), "sales")
	require.Equal(t, ops.Usage, refusal(err))
	require.EqualError(t, err, `report: expected one of runs, found "sales"`)
	r.open(fault.Infrastructure, "connection")
	table, err = r.ops.Report(t.Context(), "")
	require.NoError(t, err, "names need no SQL")
	require.Equal(t, run.Table{Columns: []string{"report", "answers"}, Rows: [][]any{{"runs", "the latest"}}}, table)
	_, err = r.ops.Report(t.Context(), "runs")
	require.True(t, breaker.IsRefusal(err), "%v", err)
	_, err = r.ops.Report(t.Context(), "sales")
	require.Equal(t, ops.Usage, refusal(err), "an unknown name is refused without SQL")
}
