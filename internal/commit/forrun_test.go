package commit_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"sqlwriter/internal/commit"
	"sqlwriter/internal/invoice"
)

// runFor commits documents as a batch of a run, and gives the result of each.
func (w *world) runFor(rewrite bool, over []invoice.Status, snapshots ...json.RawMessage) (map[string]commit.DocumentResult, commit.Report) {
	w.t.Helper()
	results := map[string]commit.DocumentResult{}
	report, err := w.commit.Run(w.t.Context(), commit.Batch{
		Documents: snapshots, Received: w.clock, Purpose: commit.ForRun, TakeOver: over, Rewrite: rewrite, BatchID: "run-1",
		OnResult: func(t commit.DocumentResult) { // Parallel is 1
			require.NotContains(w.t, results, t.ID, "one result each")
			results[t.ID] = t
		},
	})
	require.NoError(w.t, err)
	return results, report
}

func TestARunTakesOnlyWhatItMayTakeOver(t *testing.T) {
	w := newWorld(t, 1, 2, 3, 4)
	pending, waits := result(1, 1, "ACME", ""), result(2, 2, "ACME", fmt.Sprintf(`{"status":"retry_scheduled","retry_count":1,"retry_after":%d}`, start().Unix()+1))
	failed, committed := result(3, 3, "ACME", `{"status":"failed","retry_count":5,"failed_at":"x","error":"x"}`), result(4, 4, "ACME", `{"status":"committed","retry_count":0}`)
	docs := w.put(pending, waits, failed, committed)

	results, _ := w.runFor(false, []invoice.Status{invoice.Failed}, docs...)
	require.Equal(t, "applied", results[idOf(t, pending)].Outcome)
	require.Equal(t, "skipped", results[idOf(t, waits)].Outcome, "it is not due")
	require.Equal(t, "applied", results[idOf(t, failed)].Outcome)
	require.Equal(t, "skipped", results[idOf(t, committed)].Outcome)
	s := w.state(idOf(t, failed))
	require.Equal(t, "committed", s["status"])
	require.Equal(t, 1.0, s["reprocess_count"])

	results, _ = w.runFor(false, []invoice.Status{invoice.RetryScheduled}, w.snapshots(idOf(t, waits))...)
	require.Equal(t, "applied", results[idOf(t, waits)].Outcome)
}

func TestARunIsToldWhyADocumentFailed(t *testing.T) {
	w := newWorld(t, 1)
	missing := result(2, 99, "ACME", `{"status":"failed","retry_count":5,"failed_at":"x"}`)
	results, _ := w.runFor(false, []invoice.Status{invoice.Failed}, w.put(result(1, 1, "ACME", ""), missing)...)
	got := results[idOf(t, missing)]
	require.Equal(t, "retry_scheduled", got.Outcome, "its budget starts anew")
	require.Equal(t, 1, got.RetryCount)
	require.True(t, got.Again)
	require.Equal(t, "missing_detail_row", got.Code)
	require.Contains(t, got.Reason, "99")
}

func TestRewritingTouchesLinesAndNeverACommittedDocument(t *testing.T) {
	w := newWorld(t, 1, 2)
	good, bad := result(1, 1, "ACME", ""), result(2, 2, "ACME", "")
	w.run(w.put(good, bad)...)
	w.edit(1, "CLN_MFR_AI_NM", "a person's")
	require.NoError(t, w.docs.Put(json.RawMessage(result(2, 2, tooLong(), `{"status":"committed","retry_count":0,"outcome":"applied"}`))))
	before := w.snapshots(idOf(t, good), idOf(t, bad))

	results, report := w.runFor(true, []invoice.Status{invoice.Committed}, before...)
	require.Equal(t, "applied", results[idOf(t, good)].Outcome)
	require.Equal(t, "ACME", w.value(1, invoice.Detail, "CLN_MFR_AI_NM"))
	require.Equal(t, "failed", results[idOf(t, bad)].Outcome)
	require.False(t, results[idOf(t, bad)].Again)
	require.Zero(t, report.Writes, "a committed document stays true")
	require.Equal(t, before, w.snapshots(idOf(t, good), idOf(t, bad)))

	results, _ = w.runFor(false, []invoice.Status{invoice.Committed}, before[0])
	require.Equal(t, "unchanged", results[idOf(t, good)].Outcome, "without rewrite nothing is written again")
}

// edit changes a column of a line as a person does.
func (w *world) edit(line int64, column, value string) {
	w.t.Helper()
	l, ok := w.sink.Line(line)
	require.True(w.t, ok)
	l.Values = slices.Clone(l.Values)
	for i, c := range invoice.Columns() {
		if c.Table == invoice.Detail && c.Name == column {
			l.Values[i] = invoice.Of(value)
		}
	}
	w.sink.SetLine(line, l)
}
