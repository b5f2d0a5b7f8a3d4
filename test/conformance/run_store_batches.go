package conformance

import (
	"fmt"
	"slices"
	"time"

	"github.com/stretchr/testify/require"

	"sqlwriter/internal/invoice"
	"sqlwriter/internal/run"
)

// runBatchCases are those about batches.
func runBatchCases() []runCase {
	return []runCase{
		{"a worker claims a batch", batchClaim},
		{"the answers to a claim", batchAnswers},
		{"a worker takes over in place from one that has said nothing", batchTakeOver},
		{"a claim says whether a worker had the batch before", batchBegun},
		{"workers that die with a batch are counted, until it is requeued", batchLostWorkers},
		{"a worker that speaks keeps its batch and learns that its run is to end", batchBeat},
		{"outcomes replace each other and are counted for the worker", batchSave},
		{"outcomes and details that cannot be are refused", batchSaveImpossible},
		{"a hundred outcomes at once, and the latest hundred details", batchSaveMany},
		{"a batch whose documents all have an outcome is completed", batchFinish},
		{"a batch that does not add up is failed and says so", batchFinishShort},
		{"a released batch is taken over at once", batchRelease},
		{"a message that shows the owner's epoch takes the batch at once", batchShown},
		{"a message of another attempt than its row's gets nothing", batchOutdated},
		{"a claim and a dead letter leave a foreign batch alone", batchForeign},
		{"a batch is given up", batchFail},
		{"what a batch came to that was given up is counted", batchCounts},
		{"a late worker changes nothing", batchLate},
		{"a failed batch is requeued", batchRequeue},
		{"a requeued batch makes its completed run run again", batchRequeueCompleted},
		{"a batch whose run has ended is not requeued", batchRequeueNothing},
		{"a dead letter fails a batch that nobody works on", batchDeadLetter},
		{"a dead letter of a batch that has a later message changes nothing", batchDeadLetterNothing},
		{"batches by number, by status, and the latest of all runs", batchList},
		{"documents page by page, by key", batchItems},
	}
}

func batchClaim(r *runTest) {
	r.batches("r", 2)
	w := r.worker(RunBatchWorker)
	c, err := r.Store.ClaimBatch(r.Context(), batchID("r", 2), run.Ticket{}, w, runStale, entry("BATCH_START"))
	require.NoError(r, err)
	require.Equal(r, run.Taken, c.Answer)
	require.False(r, c.TookOver)
	require.Equal(r, run.BatchLease{Batch: batchID("r", 2), Run: "r", Owner: w.ID, Epoch: 1}, c.Lease)
	require.Equal(r, documentsOf("r", 2), c.Open)
	r.recent(c.Batch.HeartbeatAt)
	r.recent(c.Batch.StartedAt)
	require.Equal(r, []any{run.Processing, w.ID, 1, 2},
		[]any{c.Batch.Status, c.Batch.Owner, c.Batch.Epoch, c.Batch.Total})
	require.Equal(r, c.Batch, r.batchOf(c.Batch.ID))
	require.Equal(r, []any{"r", runSys, run.Drain}, []any{c.Run.ID, c.Run.SysName, c.Run.Kind})
	require.Equal(r,
		RunWorker{ID: w.ID, Instance: w.Instance, Kind: RunBatchWorker, Status: run.WorkerRunning}, r.workerRow(w.ID))
	require.Equal(r, []string{"RUN_START", "BATCH_START"}, r.codes())
	require.Equal(r, run.PendingQueue, r.batchOf(batchID("r", 1)).Status)
}

func batchAnswers(r *runTest) {
	r.batches("r", 6)
	answers := func(id string, want run.Answer, why string) {
		r.Helper()
		r.changesNothing(why, func() {
			c := r.claim(id)
			require.Equal(r, want, c.Answer, why)
			require.Equal(r, []string{id, "r"}, []string{c.Batch.ID, c.Run.ID}, "the rows come along")
		})
	}
	r.finish(r.leaseBatch(batchID("r", 1)))
	answers(batchID("r", 1), run.Finished, "completed")
	require.NoError(r, r.Store.FailBatch(r.Context(), r.leaseBatch(batchID("r", 2)), "x", entry("X")))
	answers(batchID("r", 2), run.Finished, "failed")
	r.leaseBatch(batchID("r", 3))
	answers(batchID("r", 3), run.Busy, "somebody is at it")
	n, err := r.Store.MarkQueued(r.Context(), run.RunLease{}, []run.Batch{r.batchOf(batchID("r", 4))})
	require.NoError(r, err)
	require.Equal(r, 1, n)
	r.leaseBatch(batchID("r", 4)) // a queued one
	_, _, err = r.Store.MarkUnsent(r.Context(), []run.Batch{r.batchOf(batchID("r", 5))}, "x", false, givenUp)
	require.NoError(r, err)
	r.leaseBatch(batchID("r", 5)) // one that is pending_retry
	r.must(r.Store.CancelRun(r.Context(), "r", entry("X")))
	answers(batchID("r", 6), run.Ended, "its run is to end")

	r.batches("failed", 1)
	r.Age(r, runStale)
	r.must(r.Store.FailRun(r.Context(), "failed", "x", runStale, entry("X")))
	require.Equal(r, run.Ended, r.claim(batchID("failed", 1)).Answer)
	r.changesNothing("no such", func() { require.Equal(r, run.Unknown, r.claim(batchID("r", 7)).Answer) })
}

func batchTakeOver(r *runTest) {
	r.batches("r", 1)
	first := r.leaseBatch(batchID("r", 1))
	r.save(first, invoice.OutcomeApplied, documentsOf("r", 1)[0])
	started := r.batchOf(first.Batch).StartedAt
	r.Age(r, runAlmost)
	require.Equal(r, run.Busy, r.claim(first.Batch).Answer)
	r.Age(r, runAlmost)
	c := r.claim(first.Batch)
	require.Equal(r, run.Taken, c.Answer)
	require.True(r, c.TookOver)
	require.Equal(r, first.Epoch+1, c.Lease.Epoch)
	require.Equal(r, documentsOf("r", 1)[1:], c.Open, "what the first one did stands")
	require.Equal(r, run.Processing, c.Batch.Status)
	require.WithinDuration(r, started, c.Batch.StartedAt, time.Hour)
	require.Greater(r, c.Batch.HeartbeatAt.Sub(c.Batch.StartedAt), runAlmost,
		"process_start_time is of the first claim")
	r.workerIs(first.Owner, run.WorkerFailed)
	r.workerIs(c.Lease.Owner, run.WorkerRunning)
	_, err := r.Store.BeatBatch(r.Context(), first)
	r.lost(err)
	r.finish(c.Lease)
}

// batchBegun: however long ago a worker had the batch, it may have finished documents and not recorded them. Another
// epoch says nothing of that.
func batchBegun(r *runTest) {
	r.batches("r", 2)
	begun := func(id string, epoch int, want bool, why string) run.BatchLease {
		r.Helper()
		c := r.claim(id)
		require.Equal(r, []any{run.Taken, epoch, want}, []any{c.Answer, c.Lease.Epoch, c.Begun}, why)
		return c.Lease
	}
	r.must(r.Store.DeadLetter(r.Context(), batchID("r", 1), run.FirstAttempt, "x", runStale, entry("X")))
	r.must(r.Store.RequeueBatch(r.Context(), batchID("r", 1), entry("X")))
	h := begun(batchID("r", 1), 2, false, "requeued before anybody had it")
	require.NoError(r, r.Store.ReleaseBatch(r.Context(), h, entry("X")))
	h = begun(h.Batch, 3, true, "let go of")
	r.Age(r, runStale)
	h = begun(h.Batch, 4, true, "taken over")
	r.Age(r, runStale)
	require.Equal(r, 1, r.rescue(runSys, 100)[0])
	h = begun(h.Batch, 5, true, "rescued")
	require.NoError(r, r.Store.FailBatch(r.Context(), h, "x", entry("X")))
	r.must(r.Store.RequeueBatch(r.Context(), h.Batch, entry("X")))
	begun(h.Batch, 7, true, "requeued")

	r.Age(r, runStale)
	r.must(r.Store.FailRun(r.Context(), "r", "x", runStale, entry("X")))
	r.must(r.Store.ResumeRun(r.Context(), "r", entry("X")))
	begun(batchID("r", 2), 2, false, "resumed before anybody had it")
}

func batchLostWorkers(r *runTest) {
	r.batches("r", 1)
	id := batchID("r", 1)
	h := r.leaseBatch(id)
	require.Zero(r, r.batchOf(id).LostWorkers)
	require.NoError(r, r.Store.ReleaseBatch(r.Context(), h, entry("X")))
	require.Zero(r, r.leaseBatch(id).Epoch-h.Epoch-1)
	require.Zero(r, r.batchOf(id).LostWorkers, "one that let go did not die")
	r.Age(r, runStale)
	c := r.claim(id)
	require.Equal(r, run.Taken, c.Answer)
	require.Equal(r, 1, c.Batch.LostWorkers)
	r.Age(r, runStale)
	require.Equal(r, 1, r.rescue(runSys, 100)[0])
	require.Equal(r, 2, r.batchOf(id).LostWorkers)
	h = r.leaseBatch(id)
	require.Equal(r, 2, r.batchOf(id).LostWorkers, "nobody had it")
	require.NoError(r, r.Store.ReleaseBatch(r.Context(), h, entry("X")))
	r.Age(r, runReleased)
	require.Equal(r, 1, r.rescue(runSys, 100)[0])
	require.Equal(r, 2, r.batchOf(id).LostWorkers, "let go of and then left")
	require.NoError(r, r.Store.FailBatch(r.Context(), r.leaseBatch(id), "enough", entry("X")))
	r.must(r.Store.RequeueBatch(r.Context(), id, entry("X")))
	require.Zero(r, r.batchOf(id).LostWorkers)
	counts, err := r.Store.BatchCounts(r.Context(), "r")
	require.NoError(r, err)
	require.Equal(r, map[run.BatchStatus]int{run.PendingRetry: 1}, counts)
}

func batchBeat(r *runTest) {
	r.batches("r", 1)
	h := r.leaseBatch(batchID("r", 1))
	for range 3 {
		r.Age(r, runAlmost)
		cancel, err := r.Store.BeatBatch(r.Context(), h)
		require.NoError(r, err)
		require.False(r, cancel)
		r.recent(r.batchOf(h.Batch).HeartbeatAt)
	}
	batches, _, err := r.Store.Rescue(r.Context(), runSys, runStale, runReleased, 100)
	require.NoError(r, err)
	require.Zero(r, batches)
	r.workerIs(h.Owner, run.WorkerRunning)
	r.must(r.Store.CancelRun(r.Context(), "r", entry("RUN_CANCEL")))
	cancel, err := r.Store.BeatBatch(r.Context(), h)
	require.NoError(r, err)
	require.True(r, cancel)
}

func batchSave(r *runTest) {
	docs := documentsOf("r", 1)
	r.batches("r", 2)
	h := r.leaseBatch(batchID("r", 1))
	first := []run.ItemOutcome{
		{Document: docs[0], Outcome: invoice.OutcomeRetryScheduled, Code: "2628"},
		{Document: docs[1], Outcome: invoice.OutcomeGone},
	}
	detail := run.ErrorDetail{
		Document: docs[0], EntityID: 9_007_199_254_740_993, Code: "2628", Message: "too long for its column",
		Type: run.TypeMigration, RetryCount: 3, Retryable: true, At: time.Unix(1, 0),
	}
	require.NoError(r, r.Store.SaveOutcomes(r.Context(), h, first, []run.ErrorDetail{detail}))
	require.Equal(r, 2, r.workerRow(h.Owner).Processed)
	require.NoError(r,
		r.Store.SaveOutcomes(r.Context(), h,
			[]run.ItemOutcome{{Document: docs[0], Outcome: invoice.OutcomeApplied}}, nil))
	require.Equal(r, 3, r.workerRow(h.Owner).Processed)
	last := run.ErrorDetail{Document: docs[1], Code: "later", Message: "later", Type: run.TypeSystem}
	require.NoError(r, r.Store.SaveOutcomes(r.Context(), h, nil, []run.ErrorDetail{last}))
	require.Equal(r, 3, r.workerRow(h.Owner).Processed)

	found := map[string]run.ItemOutcome{}
	for _, it := range r.items("r") {
		found[it.Document] = it
	}
	require.Equal(r, run.ItemOutcome{Document: docs[0], Outcome: invoice.OutcomeApplied, Number: 1}, found[docs[0]],
		"the code of before is gone")
	require.Equal(r, run.ItemOutcome{Document: docs[1], Outcome: invoice.OutcomeGone, Number: 1}, found[docs[1]])
	require.Empty(r, found[documentsOf("r", 2)[0]].Outcome)
	_, details, _, err := r.Store.Batch(r.Context(), h.Batch)
	require.NoError(r, err)
	require.Len(r, details, 2)
	for i, want := range []run.ErrorDetail{last, detail} {
		r.recent(details[i].At, "by the database's clock")
		want.At = details[i].At
		require.Equal(r, want, details[i], "the latest first")
	}
	_, details, _, err = r.Store.Batch(r.Context(), batchID("r", 2))
	require.NoError(r, err)
	require.Empty(r, details)
}

func batchSaveImpossible(r *runTest) {
	r.batches("r", 2)
	r.batches("s", 1)
	h := r.leaseBatch(batchID("r", 1))
	own := run.ItemOutcome{Document: documentsOf("r", 1)[0], Outcome: invoice.OutcomeApplied}
	for name, outcomes := range map[string][]run.ItemOutcome{
		"a document of another batch": {own, {Document: documentsOf("r", 2)[0], Outcome: invoice.OutcomeApplied}},
		"a document of another run":   {own, {Document: documentsOf("s", 1)[0], Outcome: invoice.OutcomeApplied}},
		"a document of none":          {own, {Document: "none", Outcome: invoice.OutcomeApplied}},
		"no outcome":                  {own, {Document: documentsOf("r", 1)[1]}},
		"a status": {
			own, {Document: documentsOf("r", 1)[1], Outcome: invoice.Outcome(invoice.Committed)},
		},
		"the word of a shadow": {own, {Document: documentsOf("r", 1)[1], Outcome: "would_be_applied"}},
		"more than 100":        slices.Repeat([]run.ItemOutcome{own}, 101),
	} {
		r.changesNothing(name, func() { r.refused(r.Store.SaveOutcomes(r.Context(), h, outcomes, nil), "", name) })
	}
	r.changesNothing("more than 100 details", func() {
		details := slices.Repeat([]run.ErrorDetail{{Document: own.Document, Code: "1", Type: run.TypeSystem}}, 101)
		r.refused(r.Store.SaveOutcomes(r.Context(), h, []run.ItemOutcome{own}, details), "")
	})
	require.NoError(r, r.Store.SaveOutcomes(r.Context(), h, nil, nil))
}

func batchSaveMany(r *runTest) {
	docs, outcomes, details := []string{}, []run.ItemOutcome{}, []run.ErrorDetail{}
	all := invoice.Outcomes()
	for i := range 100 {
		docs = append(docs, fmt.Sprint("d", i))
		outcomes = append(outcomes, run.ItemOutcome{Document: docs[i], Outcome: all[i%len(all)], Code: fmt.Sprint(i)})
		details = append(details, run.ErrorDetail{Document: docs[i], Code: "first", Type: run.TypeSystem})
	}
	r.start("r")
	r.add(r.leaseRun("r"), run.PendingQueue, docs)
	h := r.leaseBatch(batchID("r", 1))
	require.NoError(r, r.Store.SaveOutcomes(r.Context(), h, outcomes, details))
	require.NoError(r,
		r.Store.SaveOutcomes(r.Context(), h, nil,
			[]run.ErrorDetail{{Document: docs[0], Code: "second", Type: run.TypeSystem}}))
	require.Equal(r, 100, r.workerRow(h.Owner).Processed)
	_, found, _, err := r.Store.Batch(r.Context(), h.Batch)
	require.NoError(r, err)
	require.Len(r, found, 100)
	require.Equal(r, "second", found[0].Code)
	stats, err := r.Store.FinishBatch(r.Context(), h, func(run.BatchStats) run.Audit { return entry("BATCH_DONE") })
	require.NoError(r, err)
	want := map[invoice.Outcome]int{}
	success := 0
	for _, o := range outcomes {
		want[o.Outcome]++
		if o.Outcome.Success() {
			success++
		}
	}
	require.Equal(r,
		run.BatchStats{Total: 100, Success: success, Failure: 100 - success, Outcomes: want, AddsUp: true}, stats)
	require.Equal(r, []int{success, 100 - success}, []int{r.batchOf(h.Batch).Success, r.batchOf(h.Batch).Failure})
}

func batchFinish(r *runTest) {
	r.batches("r", 1)
	h := r.leaseBatch(batchID("r", 1))
	r.save(h, invoice.OutcomeUnchanged, documentsOf("r", 1)[0])
	r.save(h, invoice.OutcomeRetryScheduled, documentsOf("r", 1)[1])
	var seen run.BatchStats
	stats, err := r.Store.FinishBatch(r.Context(), h, func(s run.BatchStats) run.Audit {
		seen = s
		return entry("BATCH_DONE")
	})
	require.NoError(r, err)
	want := run.BatchStats{
		Total: 2, Success: 1, Failure: 1,
		Outcomes: map[invoice.Outcome]int{invoice.OutcomeUnchanged: 1, invoice.OutcomeRetryScheduled: 1}, AddsUp: true,
	}
	require.Equal(r, want, stats)
	require.Equal(r, want, seen)
	j := r.batchOf(h.Batch)
	require.Equal(r, []any{run.Completed, 1, 1, "", h.Epoch}, []any{j.Status, j.Success, j.Failure, j.Error, j.Epoch})
	r.recent(j.EndedAt)
	r.workerIs(h.Owner, run.WorkerCompleted)
	require.Equal(r, []string{"RUN_START", "BATCH_START", "BATCH_DONE"}, r.codes())
}

func batchFinishShort(r *runTest) {
	r.batches("r", 1)
	h := r.leaseBatch(batchID("r", 1))
	r.save(h, invoice.OutcomeApplied, documentsOf("r", 1)[0])
	stats, err := r.Store.FinishBatch(r.Context(), h, func(s run.BatchStats) run.Audit {
		return entry(fmt.Sprint("ADDS_UP ", s.AddsUp))
	})
	require.NoError(r, err)
	require.Equal(r, []any{2, 1, 0, false, 1},
		[]any{stats.Total, stats.Success, stats.Failure, stats.AddsUp, stats.Outcomes[invoice.OutcomeApplied]})
	j := r.batchOf(h.Batch)
	require.Equal(r, run.Failed, j.Status)
	require.NotEmpty(r, j.Error, "it says what is missing")
	r.recent(j.EndedAt)
	r.workerIs(h.Owner, run.WorkerFailed)
	require.Equal(r, "ADDS_UP false", r.codes()[2])
	outcomes := func() map[invoice.Outcome]int {
		stats, err := r.Store.Stats(r.Context(), "r")
		require.NoError(r, err)
		return stats.Outcomes
	}
	require.Equal(r, map[invoice.Outcome]int{invoice.OutcomeApplied: 1, "": 1}, outcomes())
	done, err := r.Store.RequeueBatch(r.Context(), h.Batch, entry("BATCH_REQUEUE"))
	require.NoError(r, err)
	require.True(r, done)
	h = r.leaseBatch(h.Batch)
	r.save(h, invoice.OutcomeFailed, documentsOf("r", 1)[1])
	require.Equal(r, map[invoice.Outcome]int{invoice.OutcomeApplied: 1, invoice.OutcomeFailed: 1}, outcomes())
}

func batchRelease(r *runTest) {
	r.batches("r", 1)
	h := r.leaseBatch(batchID("r", 1))
	r.save(h, invoice.OutcomeApplied, documentsOf("r", 1)[0])
	started := r.batchOf(h.Batch).StartedAt
	require.NoError(r, r.Store.ReleaseBatch(r.Context(), h, entry("BATCH_RELEASE")))
	j := r.batchOf(h.Batch)
	require.Equal(r, []any{run.Processing, "", h.Epoch}, []any{j.Status, j.Owner, j.Epoch})
	require.Zero(r, j.HeartbeatAt)
	r.workerIs(h.Owner, run.WorkerIdle)
	c := r.claim(h.Batch)
	require.Equal(r, run.Taken, c.Answer)
	require.True(r, c.TookOver, "from one that let go")
	require.Equal(r, h.Epoch+1, c.Lease.Epoch)
	require.Equal(r, documentsOf("r", 1)[1:], c.Open)
	require.Equal(r, started, c.Batch.StartedAt)
	r.workerIs(h.Owner, run.WorkerIdle)
	require.Equal(r, run.Busy, r.claim(h.Batch).Answer)
	require.Equal(r, []string{"RUN_START", "BATCH_START", "BATCH_RELEASE"}, r.codes(),
		"a batch may be claimed many times")
	require.NoError(r, r.Store.ReleaseBatch(r.Context(), c.Lease))
	require.Len(r, r.codes(), 3)
	r.workerIs(c.Lease.Owner, run.WorkerIdle)
	require.Zero(r, r.batchOf(h.Batch).LostWorkers)
}

// A message that shows the owner's epoch takes the batch at once: its worker let go, and could not write so.
func batchShown(r *runTest) {
	r.batches("r", 1)
	h := r.leaseBatch(batchID("r", 1))
	claim := func(epoch int) run.Claimed {
		r.Helper()
		w := r.worker(RunBatchWorker)
		c, err := r.Store.ClaimBatch(r.Context(), h.Batch, run.Ticket{Attempt: run.FirstAttempt, Epoch: epoch}, w,
			runStale, entry("BATCH_START"))
		require.NoError(r, err)
		return c
	}
	for _, epoch := range []int{0, h.Epoch - 1, h.Epoch + 1} {
		require.Equal(r, run.Busy, claim(epoch).Answer, epoch)
	}
	c := claim(h.Epoch)
	require.Equal(r, run.Taken, c.Answer)
	require.True(r, c.TookOver)
	require.Equal(r, []int{h.Epoch + 1, 0}, []int{c.Lease.Epoch, r.batchOf(h.Batch).LostWorkers})
	r.workerIs(h.Owner, run.WorkerIdle)
	r.leaseLost(h, "it let go")
	r.Age(r, runStale)
	require.Equal(r, run.Taken, claim(c.Lease.Epoch).Answer)
	require.Zero(r, r.batchOf(h.Batch).LostWorkers, "however long ago")
	r.Age(r, runStale)
	last := claim(c.Lease.Epoch)
	require.Equal(r, run.Taken, last.Answer)
	require.Equal(r, 1, last.Batch.LostWorkers, "a message that does not show it")
	require.Equal(r, []string{"RUN_START", "BATCH_START", "BATCH_START"}, r.codes(),
		"the first claim, and over a lost worker")
}

// A message gets nothing that is older than its row's attempt, or shows one that no row had.
func batchOutdated(r *runTest) {
	r.batches("r", 1)
	id := batchID("r", 1)
	r.unsent("x", false, r.batchOf(id))
	claim := func(attempt int) run.Answer {
		r.Helper()
		c, err := r.Store.ClaimBatch(r.Context(), id, run.Ticket{Attempt: attempt},
			r.worker(RunBatchWorker), runStale, entry("X"))
		require.NoError(r, err)
		return c.Answer
	}
	r.changesNothing("an earlier attempt", func() { require.Equal(r, run.Outdated, claim(run.FirstAttempt)) })
	r.changesNothing("an invented one", func() { require.Equal(r, run.Outdated, claim(1<<30)) })
	require.Equal(r, run.Taken, claim(run.FirstAttempt+1))
	r.changesNothing("while somebody has it", func() { require.Equal(r, run.Outdated, claim(run.FirstAttempt)) })
	r.finish(run.BatchLease{Batch: id, Run: "r", Owner: r.batchOf(id).Owner, Epoch: r.batchOf(id).Epoch})
	require.Equal(r, run.Finished, claim(run.FirstAttempt))
}

// A batch's id is no secret, and environments may share a database.
func batchForeign(r *runTest) {
	for n, in := range []situation{
		inPendingQueue, inQueued, inPendingRetry, inProcessingDead, inProcessingAlone, inFailed,
	} {
		b := r.bring(fmt.Sprint("theirs-", n), in)
		was := r.stateOf(b.batch.Run)
		c, err := r.Store.ClaimBatch(r.Context(), b.batch.ID,
			run.Ticket{Attempt: b.batch.Attempt, Epoch: b.batch.Epoch},
			r.worker(RunBatchWorker), runStale, entry("X"))
		require.NoError(r, err)
		require.Equal(r, run.Foreign, c.Answer)
		require.Equal(r, b.sys, c.Run.SysName, "the run comes along")
		r.mustNot(r.Store.DeadLetter(r.Context(), b.batch.ID, b.batch.Attempt, "x", runStale, entry("X")))
		require.Equal(r, was, r.stateOf(b.batch.Run), in)
	}
}

func batchFail(r *runTest) {
	r.batches("r", 1)
	h := r.leaseBatch(batchID("r", 1))
	require.NoError(r, r.Store.FailBatch(r.Context(), h, "a panic", entry("BATCH_FAIL")))
	j := r.batchOf(h.Batch)
	require.Equal(r, []any{run.Failed, "a panic"}, []any{j.Status, j.Error})
	r.recent(j.EndedAt)
	r.workerIs(h.Owner, run.WorkerFailed)
	require.Equal(r, "BATCH_FAIL", r.codes()[2])
}

// batchCounts: every way to give a batch up.
func batchCounts(r *runTest) {
	all := invoice.Outcomes()
	docs := func(id string, number int) []string {
		list := []string{"none"}
		for _, o := range all {
			list = append(list, string(o))
		}
		for i := range list {
			list[i] = fmt.Sprint(id, number, list[i])
		}
		return list
	}
	begin := func(id string, n int) []string {
		r.Helper()
		r.start(id)
		batches, ids := [][]string{}, []string{}
		for i := range n {
			batches, ids = append(batches, docs(id, i+1)), append(ids, batchID(id, i+1))
		}
		r.add(r.leaseRun(id), run.PendingQueue, batches...)
		return ids
	}
	holds := func(ids ...string) (last run.BatchLease) {
		r.Helper()
		for _, id := range ids {
			last = r.leaseBatch(id)
			j := r.batchOf(id)
			for i, o := range all {
				r.save(last, o, docs(j.Run, j.Number)[i+1])
			}
		}
		return last
	}
	counted := func(id string, success, failure int) {
		r.Helper()
		j := r.batchOf(id)
		require.Equal(r, []any{run.Failed, success, failure}, []any{j.Status, j.Success, j.Failure})
	}

	ids := begin("r", 5)
	require.NoError(r, r.Store.FailBatch(r.Context(), holds(ids[0]), "x", entry("X")))
	counted(ids[0], len(all)-4, 4)
	holds(ids[1:4]...)
	r.Age(r, runStale)
	r.must(r.Store.DeadLetter(r.Context(), ids[1], run.FirstAttempt, "x", runStale, entry("X")))
	counted(ids[1], len(all)-4, 4)
	require.Equal(r, []int{0, 0}, []int{r.batchOf(ids[2]).Success, r.batchOf(ids[2]).Failure}, "another batch")
	require.Equal(r, 2, r.rescue(runSys, 100)[0])
	for range 2 {
		r.unsent("x", true, r.batchOf(ids[2]), r.batchOf(ids[3]))
	}
	require.Equal(r, [2]int{0, 1}, r.unsent("x", true, r.batchOf(ids[2])))
	counted(ids[2], len(all)-4, 4)
	require.Equal(r, []int{0, 0}, []int{r.batchOf(ids[3]).Success, r.batchOf(ids[3]).Failure},
		"one that has another try")
	r.must(r.Store.DeadLetter(r.Context(), ids[4], run.FirstAttempt, "x", runStale, entry("X")))
	counted(ids[4], 0, 0)

	ids = begin("c", 4)
	holds(ids[0])
	r.Age(r, runStale)
	require.Equal(r, 1, r.rescue(runSys, 100)[0])
	r.leaseBatch(ids[3])
	require.NoError(r, r.Store.ReleaseBatch(r.Context(), holds(ids[1]), entry("X")))
	r.Age(r, runStale)
	r.must(r.Store.CancelRun(r.Context(), "c", entry("X")))
	_, status, _ := r.complete("c")
	require.Equal(r, run.RunCancelled, status)
	counted(ids[0], len(all)-4, 4)
	counted(ids[1], len(all)-4, 4)
	counted(ids[2], 0, 0)
	counted(ids[3], 0, 0)
}

// leaseLost requires that every call with this lease fails as lost.
func (r *runTest) leaseLost(h run.BatchLease, why string) {
	r.Helper()
	ctx, s := r.Context(), r.Store
	it := []run.ItemOutcome{{Document: documentsOf(h.Run, 1)[0], Outcome: invoice.OutcomeFailed}}
	details := []run.ErrorDetail{{Document: it[0].Document, Code: "late", Type: run.TypeSystem}}
	for name, call := range map[string]func() error{
		"beat": func() error { _, err := s.BeatBatch(ctx, h); return err },
		"save": func() error { return s.SaveOutcomes(ctx, h, it, details) },
		"finish": func() error {
			_, err := s.FinishBatch(ctx, h, func(run.BatchStats) run.Audit { return entry("X") })
			return err
		},
		"release": func() error { return s.ReleaseBatch(ctx, h, entry("X")) },
		"fail":    func() error { return s.FailBatch(ctx, h, "late", entry("X")) },
	} {
		r.changesNothing(why+": "+name, func() { r.lost(call(), why, name) })
	}
}

func batchLate(r *runTest) {
	r.batches("over", 1)
	h := r.leaseBatch(batchID("over", 1))
	r.Age(r, runStale)
	next := r.leaseBatch(h.Batch)
	r.leaseLost(h, "taken over")
	r.leaseLost(
		run.BatchLease{Batch: next.Batch, Run: next.Run, Owner: next.Owner, Epoch: next.Epoch - 1}, "another epoch")
	r.leaseLost(run.BatchLease{Batch: next.Batch, Run: next.Run, Owner: h.Owner, Epoch: next.Epoch}, "another worker")
	r.leaseLost(
		run.BatchLease{Batch: batchID("over", 2), Run: next.Run, Owner: next.Owner, Epoch: next.Epoch}, "no such batch")
	require.NoError(r, r.Store.ReleaseBatch(r.Context(), next, entry("X")))
	r.leaseLost(next, "released")
	r.leaseLost(run.BatchLease{Batch: next.Batch, Run: next.Run, Epoch: next.Epoch}, "an empty owner has no lease")
	next = r.leaseBatch(h.Batch)
	r.finish(next)
	r.leaseLost(next, "finished")

	r.batches("rescue", 1)
	h = r.leaseBatch(batchID("rescue", 1))
	r.Age(r, runStale)
	_, _, err := r.Store.Rescue(r.Context(), runSys, runStale, runReleased, 100)
	require.NoError(r, err)
	r.leaseLost(h, "rescued")

	r.batches("dead", 1)
	h = r.leaseBatch(batchID("dead", 1))
	r.Age(r, runStale)
	r.must(r.Store.DeadLetter(r.Context(), h.Batch, run.FirstAttempt, "x", runStale, entry("X")))
	r.leaseLost(h, "a dead letter")
	r.must(r.Store.RequeueBatch(r.Context(), h.Batch, entry("X")))
	r.leaseLost(h, "requeued")
}

func batchRequeue(r *runTest) {
	r.batches("r", 1)
	h := r.leaseBatch(batchID("r", 1))
	r.save(h, invoice.OutcomeApplied, documentsOf("r", 1)[0])
	require.NoError(r, r.Store.FailBatch(r.Context(), h, "a panic", entry("BATCH_FAIL")))
	was := r.batchOf(h.Batch)
	r.must(r.Store.RequeueBatch(r.Context(), h.Batch, entry("BATCH_REQUEUE")))
	j := r.batchOf(h.Batch)
	require.Equal(r, []any{run.PendingRetry, was.Attempt + 1, was.Epoch + 1, 0, "", ""},
		[]any{j.Status, j.Attempt, j.Epoch, j.QueueAttempts, j.Error, j.Owner})
	require.Zero(r, j.EndedAt)
	require.Equal(r, "BATCH_REQUEUE", r.codes()[3])
	r.changesNothing("it is not failed any more", func() {
		r.mustNot(r.Store.RequeueBatch(r.Context(), h.Batch, entry("X")))
	})
	c := r.claim(h.Batch)
	require.Equal(r, run.Taken, c.Answer)
	require.Equal(r, documentsOf("r", 1)[1:], c.Open, "what was done stands")
	r.finish(c.Lease)
	require.Equal(r, []int{2, 0}, []int{r.batchOf(h.Batch).Success, r.batchOf(h.Batch).Failure})
}

func batchRequeueCompleted(r *runTest) {
	l := r.batches("r", 1)
	require.NoError(r, r.Store.EndHandOff(r.Context(), l, entry("X")))
	require.NoError(r, r.Store.FailBatch(r.Context(), r.leaseBatch(batchID("r", 1)), "x", entry("X")))
	ok, _, _ := r.complete("r")
	require.True(r, ok)
	r.must(r.Store.RequeueBatch(r.Context(), batchID("r", 1), entry("BATCH_REQUEUE")))
	require.Equal(r, run.RunRunning, r.read("r").Status)
	require.Zero(r, r.read("r").EndedAt)
	r.notComplete("r", "it has an open batch again")
	require.Zero(r, r.read("r").HandedOffAt, "a manager sends the message")
	r.finish(r.leaseBatch(batchID("r", 1)))
	r.notComplete("r", "its manager is at it")
	require.NoError(r, r.Store.EndHandOff(r.Context(), r.leaseRun("r"), entry("X")))
	ok, status, _ := r.complete("r")
	require.True(r, ok)
	require.Equal(r, run.RunCompleted, status)
}

func batchRequeueNothing(r *runTest) {
	not := func(id, why string) {
		r.Helper()
		r.changesNothing(why, func() { r.mustNot(r.Store.RequeueBatch(r.Context(), id, entry("X"))) })
	}
	r.batches("cancelled", 1)
	r.must(r.Store.CancelRun(r.Context(), "cancelled", entry("X")))
	r.complete("cancelled")
	not(batchID("cancelled", 1), "its run was cancelled")

	r.batches("failed", 1)
	require.NoError(r, r.Store.FailBatch(r.Context(), r.leaseBatch(batchID("failed", 1)), "x", entry("X")))
	r.Age(r, runStale)
	r.must(r.Store.FailRun(r.Context(), "failed", "x", runStale, entry("X")))
	not(batchID("failed", 1), "its run failed")
}

func batchDeadLetter(r *runTest) {
	r.batches("r", 5)
	_, err := r.Store.MarkQueued(r.Context(), run.RunLease{}, []run.Batch{r.batchOf(batchID("r", 2))})
	require.NoError(r, err)
	_, _, err = r.Store.MarkUnsent(r.Context(), []run.Batch{r.batchOf(batchID("r", 3))}, "x", false, givenUp)
	require.NoError(r, err)
	r.leaseBatch(batchID("r", 4))
	r.Age(r, runStale)
	require.NoError(r, r.Store.ReleaseBatch(r.Context(), r.leaseBatch(batchID("r", 5)), entry("X")))
	for n := range 5 {
		n++
		r.must(
			r.Store.DeadLetter(r.Context(), batchID("r", n), r.batchOf(batchID("r", n)).Attempt, "delivered too often",
				runStale, entry(fmt.Sprint("DEAD ", n))))
		j := r.batchOf(batchID("r", n))
		require.Equal(r, []any{run.Failed, "delivered too often"}, []any{j.Status, j.Error}, "batch %d", n)
		codes := r.codes()
		require.Equal(r, fmt.Sprint("DEAD ", n), codes[len(codes)-1])
	}
}

func batchDeadLetterNothing(r *runTest) {
	not := func(id, why string) {
		r.Helper()
		r.changesNothing(why, func() {
			r.mustNot(r.Store.DeadLetter(r.Context(), id, run.FirstAttempt, "x", runStale, entry("X")))
		})
	}
	r.batches("r", 2)
	require.NoError(r, r.Store.FailBatch(r.Context(), r.leaseBatch(batchID("r", 2)), "first", entry("X")))

	r.batches("later", 3)
	r.unsent("x", false, r.batchOf(batchID("later", 1)))
	not(batchID("later", 1), "a message after one that was not accepted")
	r.queued(r.batchOf(batchID("later", 2)))
	r.leaseBatch(batchID("later", 3))
	r.Age(r, runSilent)
	require.Equal(r, 1, r.rescue(runSys, 100)[0])
	not(batchID("later", 3), "a message after a burial")
	r.finish(r.leaseBatch(batchID("later", 1)))
	r.queued(r.batchOf(batchID("later", 3)))
	r.Age(r, runSilent)
	n, err := r.Store.RequeueSilent(r.Context(), runSys, runSilent, 100)
	require.NoError(r, err)
	require.Equal(r, 1, n)
	not(batchID("later", 2), "a message after a silence")
	r.must(r.Store.RequeueBatch(r.Context(), batchID("r", 2), entry("X")))
	not(batchID("r", 2), "a message after a requeue")
	r.changesNothing("an invented attempt", func() {
		r.mustNot(r.Store.DeadLetter(r.Context(), batchID("r", 2), 1<<30, "x", runStale, entry("X")))
	})
	j := r.batchOf(batchID("r", 2))
	r.must(r.Store.DeadLetter(r.Context(), j.ID, j.Attempt, "x", runStale, entry("X")))
}

func batchList(r *runTest) {
	r.batches("a", 12)
	r.batches("b", 2)
	behind := func(id string, status run.BatchStatus, after string, limit int) []string {
		r.Helper()
		found, err := r.Store.ListBatches(r.Context(), id, status, after, limit)
		require.NoError(r, err)
		names := []string{}
		for _, j := range found {
			names = append(names, fmt.Sprint(j.Run, j.Number))
		}
		return names
	}
	list := func(id string, status run.BatchStatus, limit int) []string { return behind(id, status, "", limit) }
	require.Equal(r,
		[]string{"a1", "a2", "a3", "a4", "a5", "a6", "a7", "a8", "a9", "a10", "a11", "a12"}, list("a", "", 100))
	require.Equal(r, []string{"a1", "a2"}, list("a", "", 2))
	require.Empty(r, list("a", "", 0))
	r.leaseBatch(batchID("a", 3))
	r.leaseBatch(batchID("b", 2))
	require.Equal(r, []string{"a3"}, list("a", run.Processing, 100))
	require.Equal(r, []string{"a2", "a4"}, list("a", run.PendingQueue, 3)[1:])
	require.Equal(r, []string{"b2", "a3"}, list("", run.Processing, 100), "the latest first")
	require.Equal(r, "a", list("", "", 100)[2][:1])
	require.Len(r, list("", "", 100), 14)
	require.Len(r, list("", "", 5), 5)
	require.Empty(r, list("c", "", 5))
	require.Equal(r, []string{"a10", "a11"}, behind("a", "", batchID("a", 9), 2))
	require.Equal(r, []string{"a4", "a5"}, behind("a", run.PendingQueue, batchID("a", 3), 2),
		"behind one of another status")
	require.Equal(r, []string{"a3"}, behind("", run.Processing, batchID("b", 2), 5))
	require.Equal(r, list("", "", 100)[5:8], behind("", "", batchID("a", func() (n int) {
		_, err := fmt.Sscanf(list("", "", 100)[4], "a%d", &n)
		require.NoError(r, err)
		return n
	}()), 3))
	require.Empty(r, behind("a", "", batchID("a", 12), 5))
	require.Empty(r, behind("a", "", batchID("c", 1), 5), "behind nothing that is there")
}

func batchItems(r *runTest) {
	r.batches("other", 2)
	r.batches("r", 5)
	h := r.leaseBatch(batchID("r", 3))
	doc := documentsOf("r", 3)[1]
	require.NoError(r,
		r.Store.SaveOutcomes(r.Context(), h,
			[]run.ItemOutcome{{Document: doc, Outcome: invoice.OutcomeFailed, Code: "547"}}, nil))
	want := map[string]run.ItemOutcome{}
	for n := range 5 {
		for _, d := range documentsOf("r", n+1) {
			want[d] = run.ItemOutcome{Document: d, Number: n + 1}
		}
	}
	want[doc] = run.ItemOutcome{Document: doc, Outcome: invoice.OutcomeFailed, Code: "547", Number: 3}
	found, keys, after := map[string]run.ItemOutcome{}, []string{}, ""
	for range 100 {
		page, err := r.Store.Items(r.Context(), "r", nil, after, 3)
		require.NoError(r, err)
		if len(page) == 0 {
			break
		}
		require.LessOrEqual(r, len(page), 3)
		for _, it := range page {
			after = run.DocumentKey(it.Document)
			found[it.Document], keys = it, append(keys, after)
		}
	}
	require.Equal(r, want, found)
	require.Len(r, keys, 10)
	require.True(r, slices.IsSorted(keys))

	wanted := []invoice.Outcome{invoice.OutcomeFailed, invoice.OutcomeRetryScheduled}
	for limit, want := range map[int]int{0: 0, 1: 1, 100: 1} {
		page, err := r.Store.Items(r.Context(), "r", wanted, "", limit)
		require.NoError(r, err)
		require.Len(r, page, want)
	}
	page, err := r.Store.Items(r.Context(), "r", wanted, run.DocumentKey(doc), 100)
	require.NoError(r, err)
	require.Empty(r, page, "after it")
	r.save(h, invoice.OutcomeApplied, documentsOf("r", 3)[0])
	page, err = r.Store.Items(r.Context(), "r", wanted, "", 100)
	require.NoError(r, err)
	require.Equal(r, []run.ItemOutcome{want[doc]}, page)
}
