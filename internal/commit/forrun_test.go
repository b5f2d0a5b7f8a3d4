package commit_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"sqlwriter/internal/commit"
	"sqlwriter/internal/invoice"
)

// runFor commits documents as a batch of a run, and gives the result of each.
func (w *world) runFor(
	rewrite bool, over []invoice.Status, snapshots ...json.RawMessage,
) (map[string]commit.DocumentResult, commit.Report) {
	w.t.Helper()
	results := map[string]commit.DocumentResult{}
	report, err := w.commit.Run(w.t.Context(), commit.Delivery{
		Documents: snapshots, Received: w.clock, Purpose: commit.ForRun, TakeOver: over,
		Rewrite: rewrite, RunID: "run-1",
		OnResult: func(t commit.DocumentResult) { // Parallel is 1
			require.NotContains(w.t, results, t.ID, "one result each")
			results[t.ID] = t
		},
	})
	require.NoError(w.t, err)
	return results, report
}

// replayed are the statuses that a replay of named documents takes over.
func replayed() []invoice.Status { return []invoice.Status{invoice.Failed, invoice.RetryScheduled} }

func TestARunTakesOnlyWhatItMayTakeOver(t *testing.T) {
	w := newWorld(t, 1, 2, 3, 4)
	pending, waits := result(1, 1, "ACME", ""),
		result(2, 2, "ACME",
			fmt.Sprintf(`{"status":"retry_scheduled","retry_count":1,"retry_after":%d}`, start().Unix()+1))
	failed, committed := result(3, 3, "ACME", `{"status":"failed","retry_count":5,"failed_at":"x","error":"x"}`),
		result(4, 4, "ACME", `{"status":"committed","retry_count":0}`)
	docs := w.put(pending, waits, failed, committed)

	results, _ := w.runFor(false, []invoice.Status{invoice.Failed}, docs...)
	require.Equal(t, invoice.OutcomeApplied, results[idOf(t, pending)].Outcome)
	require.Equal(t, invoice.OutcomeSkipped, results[idOf(t, waits)].Outcome, "it is not due")
	require.Equal(t, invoice.OutcomeApplied, results[idOf(t, failed)].Outcome)
	require.Equal(t, invoice.OutcomeSkipped, results[idOf(t, committed)].Outcome)
	s := w.state(idOf(t, failed))
	require.Equal(t, "committed", s["status"])
	require.Equal(t, 1.0, s["reprocess_count"])

	results, _ = w.runFor(false, []invoice.Status{invoice.RetryScheduled}, w.snapshots(idOf(t, waits))...)
	require.Equal(t, invoice.OutcomeApplied, results[idOf(t, waits)].Outcome)
}

func TestARunIsToldWhyADocumentFailed(t *testing.T) {
	w := newWorld(t, 1)
	missing := result(2, 99, "ACME", `{"status":"failed","retry_count":5,"failed_at":"x"}`)
	results, _ := w.runFor(false, []invoice.Status{invoice.Failed}, w.put(result(1, 1, "ACME", ""), missing)...)
	got := results[idOf(t, missing)]
	require.Equal(t, invoice.OutcomeRetryScheduled, got.Outcome, "its budget starts anew")
	require.Equal(t, 1, got.RetryCount)
	require.True(t, got.Again)
	require.Equal(t, "missing_detail_row", got.Code)
	require.Contains(t, got.Reason, "99")
}

// reindex rewrites documents, with lines that an operator named.
func (w *world) reindex(overwrite []int64, ids ...string) map[string]commit.DocumentResult {
	w.t.Helper()
	results := map[string]commit.DocumentResult{}
	_, err := w.commit.Run(w.t.Context(), commit.Delivery{
		Documents: w.snapshots(ids...), Received: w.clock, Purpose: commit.ForRun,
		TakeOver: []invoice.Status{invoice.Committed}, Rewrite: true,
		Overwrite: overwrite, OnResult: func(r commit.DocumentResult) { results[r.ID] = r },
	})
	require.NoError(w.t, err)
	return results
}

// A document that a person repaired is left alone as long as one of its lines is not named.
func TestAManualDocumentIsRewrittenWholeOrNotAtAll(t *testing.T) {
	w := newWorld(t, 1, 2)
	doc := result(1, 1, "ACME", `{"status":"committed","outcome":"manual","retry_count":0}`, 2)
	w.put(doc)
	require.Equal(t, invoice.OutcomeManual, w.reindex([]int64{1}, idOf(t, doc))[idOf(t, doc)].Outcome)
	require.Equal(t, invoice.OutcomeApplied, w.reindex([]int64{1, 2}, idOf(t, doc))[idOf(t, doc)].Outcome)
}

// What a run writes again was committed before, so it is not counted as committed once more.
func TestADocumentBecomesCommittedOnce(t *testing.T) {
	w := newWorld(t, 1, 2)
	doc := result(1, 1, "ACME", "")
	w.run(w.put(doc)...)
	require.Equal(t, invoice.OutcomeApplied, w.reindex(nil, idOf(t, doc))[idOf(t, doc)].Outcome)
	w.run(w.put(doc, result(2, 2, "ACME", ""))...)
	w.breaker.Tell(t.Context())
	require.EqualValues(t, 3, w.breaker.Seen().Instances[0].Committed, "offered twice, and another one")
}

// A person repairs a document's line and marks it while the batch waits for its request.
func TestADocumentMarkedSinceItsSnapshotIsLeftAlone(t *testing.T) {
	w := newWorld(t, 1)
	doc := result(1, 1, "ACME", "")
	old := w.put(doc)
	w.edit(1, "CLN_MFR_AI_NM", "by hand")
	w.put(result(1, 1, "ACME", `{"status":"committed","outcome":"manual","retry_count":0}`))
	report, err := w.commit.Run(t.Context(), commit.Delivery{
		Documents: old, Received: w.clock.Add(-31 * time.Second), Purpose: commit.ForRun,
		TakeOver: []invoice.Status{invoice.Committed}, Rewrite: true,
	})
	require.NoError(t, err)
	require.Equal(t, map[invoice.Outcome]int{"manual": 1}, report.Outcomes)
	require.Equal(t, "by hand", w.value(1, invoice.Detail, "CLN_MFR_AI_NM"))
}

// A document that is offered again before its reindex keeps its status when its line was edited: the verdict is no
// outcome.
func TestAnEditedLineCommitsNoDocument(t *testing.T) {
	w := newWorld(t, 1)
	doc := result(1, 1, "ACME", "")
	w.run(w.put(doc)...)
	w.edit(1, "CLN_MFR_AI_NM", "somebody's")
	w.put(doc)
	require.Equal(t, invoice.OutcomeEdited, w.reindex(nil, idOf(t, doc))[idOf(t, doc)].Outcome)
	require.Equal(t, "pending", w.status(idOf(t, doc)))
}

// The same when it is marked while the version of an id without a time is recorded, before anything was written.
func TestADocumentThatIsMarkedBeforeItsVersionIsLeftAlone(t *testing.T) {
	w := newWorld(t, 1)
	w.put(document("no-time", 1, "ACME", `{"status":"pending","retry_count":0}`))
	w.faulty.onRecord = once(func() {
		w.put(document("no-time", 1, "ACME", `{"status":"committed","outcome":"manual","retry_count":0}`))
	})
	require.Equal(t, invoice.OutcomeManual, w.reindex(nil, "no-time")["no-time"].Outcome)
	require.Zero(t, w.faulty.writes)
}

// The container went back: the ledger has later content of the document. No later try can write it, so the run must not
// wait for one.
func TestARewriteOfADocumentThatWentBackEnds(t *testing.T) {
	w := newWorld(t, 1)
	w.run(w.put(result(1, 1, "later", ""))...)
	w.clock = w.clock.Add(-time.Hour)
	doc := result(1, 1, "earlier", `{"status":"committed","outcome":"applied","retry_count":0}`)
	w.put(doc)
	got := w.reindex(nil, idOf(t, doc))[idOf(t, doc)]
	require.Equal(t, []any{invoice.OutcomeFailed, "clock_went_back"}, []any{got.Outcome, got.Code})
	require.Equal(t, "later", w.value(1, invoice.Detail, "CLN_MFR_AI_NM"))
	require.Equal(t, "committed", w.status(idOf(t, doc)))
}

func TestRewritingTouchesLinesAndNeverACommittedDocument(t *testing.T) {
	w := newWorld(t, 1, 2)
	good, bad := result(1, 1, "ACME", ""), result(2, 2, "ACME", "")
	w.run(w.put(good, bad)...)
	require.NoError(t,
		w.docs.Put(
			json.RawMessage(result(2, 2, tooLong(), `{"status":"committed","retry_count":0,"outcome":"applied"}`))))
	before := w.snapshots(idOf(t, good), idOf(t, bad))

	results, report := w.runFor(true, []invoice.Status{invoice.Committed}, before...)
	require.Equal(t, invoice.OutcomeApplied, results[idOf(t, good)].Outcome)
	require.Equal(t, "ACME", w.value(1, invoice.Detail, "CLN_MFR_AI_NM"))
	require.Equal(t, invoice.OutcomeFailed, results[idOf(t, bad)].Outcome)
	require.False(t, results[idOf(t, bad)].Again)
	require.Zero(t, report.Writes, "a committed document stays true")
	require.Equal(t, before, w.snapshots(idOf(t, good), idOf(t, bad)))

	results, _ = w.runFor(false, []invoice.Status{invoice.Committed}, before[0])
	require.Equal(t, invoice.OutcomeUnchanged, results[idOf(t, good)].Outcome,
		"without rewrite nothing is written again")
}

// The database lost a line's content, and another document's mark. A third document was repaired by hand.
func TestAReapplyWritesWhatTheDatabaseLacks(t *testing.T) {
	w := newWorld(t, 1, 2, 3, 4, 5)
	there, lost := result(1, 1, "ACME", ""),
		result(2, 2, "ACME", `{"status":"committed","outcome":"applied","retry_count":0}`)
	failed := result(3, 3, "ACME", `{"status":"failed","retry_count":5,"failed_at":"x","error":"x"}`)
	again := result(4, 4, tooLong(), `{"status":"failed","retry_count":5,"failed_at":"x","error":"x"}`)
	byHand := result(5, 5, "ACME", `{"status":"committed","outcome":"manual","retry_count":0}`)
	worse := result(6, 99, "ACME", `{"status":"committed","outcome":"applied","retry_count":0}`)
	w.run(w.put(there)...)
	w.edit(1, "CLN_MFR_AI_NM", "somebody's")
	w.put(lost, failed, again, byHand, worse)
	stays := []string{idOf(t, there), idOf(t, lost), idOf(t, byHand), idOf(t, worse)}
	before := w.snapshots(stays...)

	results, report := w.runFor(false, []invoice.Status{invoice.Committed, invoice.Failed},
		w.snapshots(append(slices.Clone(stays), idOf(t, failed), idOf(t, again))...)...)
	for doc, want := range map[string]invoice.Outcome{
		there: "unchanged", lost: "applied", failed: "applied", again: "retry_scheduled",
		byHand: "manual", worse: "failed",
	} {
		require.Equal(t, want, results[idOf(t, doc)].Outcome, idOf(t, doc))
	}
	require.Equal(t, "missing_detail_row", results[idOf(t, worse)].Code)
	require.Equal(t, before, w.snapshots(stays...), "a committed document keeps its state")
	require.Equal(t, 2, report.Writes, "the two that had failed")
	require.Equal(t, "committed", w.status(idOf(t, failed)))
	require.Equal(t, 1.0, w.state(idOf(t, again))["retry_count"], "its budget starts anew")
	require.Equal(t, "somebody's", w.value(1, invoice.Detail, "CLN_MFR_AI_NM"),
		"a line that has the content stays untouched")
	require.Equal(t, "ACME", w.value(2, invoice.Detail, "CLN_MFR_AI_NM"))
	_, written := w.sink.Entry(5)
	require.False(t, written, "what a person repaired is theirs")
}

// Another program committed a document whose id has no time, so nobody knows its place among the others. A run gives it
// none: with the time of today it would be the newest for ever.
func TestARunGivesNoCommittedDocumentAVersion(t *testing.T) {
	for _, rewrite := range []bool{false, true} {
		w := newWorld(t, 1, 7)
		newest := result(1, 1, "NEWEST", "")
		w.run(w.put(newest)...)
		w.edit(7, "CLN_MFR_AI_NM", "BY HAND")
		ancient := document("no-time", 1, "ANCIENT", `{"status":"committed","retry_count":0}`, 7)
		before := w.put(ancient)

		results, report := w.runFor(rewrite, []invoice.Status{invoice.Committed, invoice.Failed}, before...)
		require.Equal(t, invoice.OutcomeNotComparable, results["no-time"].Outcome)
		require.Contains(t, results["no-time"].Reason, "its id has no time")
		require.Zero(t, report.Writes)
		require.Equal(t, before, w.snapshots("no-time"), "it has no version")
		require.Equal(t, []string{"NEWEST", "BY HAND"}, []string{
			w.value(1, invoice.Detail, "CLN_MFR_AI_NM"), w.value(7, invoice.Detail, "CLN_MFR_AI_NM"),
		})
	}
	w := newWorld(t, 1)
	w.put(document("no-time", 1, "ACME", `{"status":"failed","retry_count":5,"failed_at":"x"}`))
	results, _ := w.runFor(false, []invoice.Status{invoice.Committed, invoice.Failed}, w.snapshots("no-time")...)
	require.Equal(t, invoice.OutcomeApplied, results["no-time"].Outcome, "one that failed has its place from now on")
}

// earlierBuild makes the ledger's row of a line that of a build with another recipe for hashes.
func (w *world) earlierBuild(line int64) {
	w.t.Helper()
	e, ok := w.sink.Entry(line)
	require.True(w.t, ok)
	e.HashVersion, e.Hash = e.HashVersion-1, invoice.Key("another recipe")
	w.sink.SetEntry(line, e)
}

// A line of an earlier build cannot be compared, and the record of the commit made the document a later snapshot than
// the one that was written. People may have corrected the line since.
func TestAReapplyLeavesLinesOfAnotherRecipeAlone(t *testing.T) {
	w := newWorld(t, 1, 2)
	doc := result(1, 1, "ACME", "", 2)
	w.faulty.onRecord = func(int) error { w.clock = w.clock.Add(3 * time.Second); return nil }
	w.run(w.put(doc)...)
	for _, line := range []int64{1, 2} {
		w.earlierBuild(line)
	}
	w.edit(1, "CLN_MFR_AI_NM", "CORRECTED")
	over := []invoice.Status{invoice.Committed, invoice.Failed}
	again := func(told bool) (got commit.DocumentResult) {
		t.Helper()
		_, err := w.commit.Run(t.Context(), commit.Delivery{
			Documents: w.snapshots(idOf(t, doc)), Received: w.clock, Purpose: commit.ForRun, TakeOver: over,
			Rewrite: told, NotComparable: told, OnResult: func(r commit.DocumentResult) { got = r },
		})
		require.NoError(t, err)
		return got
	}
	got := again(false)
	require.Equal(t, invoice.OutcomeNotComparable, got.Outcome)
	require.Equal(t, "not comparable with what was written: lines 1, 2", got.Reason)
	require.Equal(t, "CORRECTED", w.value(1, invoice.Detail, "CLN_MFR_AI_NM"))

	// It is offered again with another content, and the database is restored to the time before: it lacks that.
	copied := w.sink.Backup()
	w.clock = w.clock.Add(time.Hour)
	w.run(w.put(result(1, 1, "NEWER", "", 2))...)
	require.Equal(t, "NEWER", w.value(1, invoice.Detail, "CLN_MFR_AI_NM"))
	beat, _ := w.sink.Heartbeats("web")
	w.sink.Restore(copied)
	w.sink.SetHeartbeat("web", beat) // an operator accepted the database
	require.Equal(t, "CORRECTED", w.value(1, invoice.Detail, "CLN_MFR_AI_NM"))
	require.Equal(t, invoice.OutcomeApplied, again(false).Outcome)
	require.Equal(t, "NEWER", w.value(1, invoice.Detail, "CLN_MFR_AI_NM"))

	w.earlierBuild(1)
	w.edit(1, "CLN_MFR_AI_NM", "CORRECTED")
	require.Equal(t, invoice.OutcomeNotComparable, again(false).Outcome, "it was written after the commit")
	require.Equal(t, "CORRECTED", w.value(1, invoice.Detail, "CLN_MFR_AI_NM"))
	require.Equal(t, invoice.OutcomeApplied, again(true).Outcome, "an operator told a reindex to")
	require.Equal(t, "NEWER", w.value(1, invoice.Detail, "CLN_MFR_AI_NM"))
}

// edit changes a column of a line as a person does.
func (w *world) edit(line int64, column, value string) {
	w.t.Helper()
	l, ok := w.sink.Line(line)
	require.True(w.t, ok)
	l.Values = slices.Clone(l.Values)
	for i, c := range invoice.DefaultMapping().Columns() {
		if c.Table == invoice.Detail && c.Name == column {
			l.Values[i] = invoice.Of(value)
		}
	}
	w.sink.SetLine(line, l)
}
