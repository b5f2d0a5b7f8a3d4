package conformance

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/stretchr/testify/require"

	"sqlwriter/internal/fault"
	"sqlwriter/internal/invoice"
	"sqlwriter/internal/run"
)

// complete asks for the end of a run and notes what the entry is made of.
func (r *runTest) complete(id string) (ok bool, status run.RunStatus, stats run.Stats) {
	r.Helper()
	ok, err := r.Store.CompleteRun(r.Context(), id, runStale, func(s run.RunStatus, found run.Stats) run.Audit {
		status, stats = s, found
		a := entry("RUN_END " + string(s))
		a.Run = id
		return a
	})
	require.NoError(r, err)
	return ok, status, stats
}

// notComplete requires that a run does not end.
func (r *runTest) notComplete(id, why string) {
	r.Helper()
	r.changesNothing(why, func() {
		ok, _, _ := r.complete(id)
		require.False(r, ok, why)
	})
}

func runComplete(r *runTest) {
	l := r.batches("r", 2)
	r.finish(r.leaseBatch(batchID("r", 1)))
	r.notComplete("r", "its manager is at it")
	require.NoError(r, r.Store.EndHandOff(r.Context(), l, entry("HANDED_OFF")))
	r.notComplete("r", "one batch is pending_queue")
	h := r.leaseBatch(batchID("r", 2))
	r.notComplete("r", "one batch is processing")
	require.NoError(r, r.Store.FailBatch(r.Context(), h, "x", entry("BATCH_FAIL")))
	ok, status, stats := r.complete("r")
	require.True(r, ok)
	require.Equal(r, run.RunCompletedWithFailures, status)
	require.Equal(r, map[run.BatchStatus]int{run.Completed: 1, run.Failed: 1}, stats.Batches)
	require.Equal(r, map[invoice.Outcome]int{invoice.OutcomeApplied: 2, "": 2}, stats.Outcomes)
	found := r.read("r")
	require.Equal(r, run.RunCompletedWithFailures, found.Status)
	r.recent(found.EndedAt)
	audits := r.Audits(r)
	require.Equal(r, []string{"RUN_END completed_with_failures", "r"},
		[]string{audits[len(audits)-1].Action, audits[len(audits)-1].Run})
	r.notComplete("r", "it has ended")
	r.Age(r, time.Hour)
	require.Less(r, r.read("r").Age, time.Minute, "how long it ran")
}

// How a run ends says whether something is left to do: with each outcome of one of its documents.
func runCompleteTruly(r *runTest) {
	for _, o := range invoice.Outcomes() {
		id := "r-" + string(o)
		l := r.batches(id, 2)
		require.NoError(r, r.Store.EndHandOff(r.Context(), l, entry("HANDED_OFF")))
		h := r.leaseBatch(batchID(id, 1))
		r.save(h, o, r.openOf(h)[0])
		r.finish(h)
		r.finish(r.leaseBatch(batchID(id, 2)))
		ok, status, stats := r.complete(id)
		require.True(r, ok)
		want := run.RunCompleted
		if slices.Contains([]invoice.Outcome{"failed", "retry_scheduled", "left", "waiting"}, o) {
			want = run.RunCompletedWithFailures
		}
		require.Equal(r, want, status, o)
		require.Equal(r, want, r.read(id).Status, o)
		require.Equal(r, want == run.RunCompletedWithFailures, stats.Failed(), o)
	}
}

func runCancel(r *runTest) {
	l := r.batches("r", 6)
	r.finish(r.leaseBatch(batchID("r", 1)))
	h := r.leaseBatch(batchID("r", 2))
	_, err := r.Store.MarkQueued(r.Context(), run.RunLease{}, []run.Batch{r.batchOf(batchID("r", 3))})
	require.NoError(r, err)
	_, _, err = r.Store.MarkUnsent(r.Context(), []run.Batch{r.batchOf(batchID("r", 4))}, "x", true, givenUp)
	require.NoError(r, err)
	released := r.leaseBatch(batchID("r", 6))
	r.save(released, invoice.OutcomeApplied, r.openOf(released)[0])
	require.NoError(r, r.Store.ReleaseBatch(r.Context(), released, entry("X")))
	r.notComplete("r", "nobody asked")

	r.must(r.Store.CancelRun(r.Context(), "r", entry("RUN_CANCEL")))
	cancel, err := r.Store.BeatBatch(r.Context(), h)
	require.NoError(r, err)
	require.True(r, cancel)
	r.notComplete("r", "a worker is alive")
	r.workerIs(l.Owner, run.WorkerRunning)
	r.Age(r, runStale)
	ok, status, stats := r.complete("r")
	require.True(r, ok)
	require.Equal(r, run.RunCancelled, status)
	require.Equal(r, map[run.BatchStatus]int{run.Completed: 1, run.Failed: 5}, stats.Batches, "as it ends")
	found := r.read("r")
	require.Equal(r, []any{run.RunCancelled, true}, []any{found.Status, found.Cancel})
	r.recent(found.EndedAt)
	for _, j := range r.batchesOf("r")[1:] {
		require.Equal(r, []any{run.Failed, run.CancelledError}, []any{j.Status, j.Error}, "batch %d", j.Number)
	}
	require.Equal(r, []any{run.Completed, ""}, []any{r.batchesOf("r")[0].Status, r.batchesOf("r")[0].Error})
	_, err = r.Store.BeatBatch(r.Context(), h)
	r.lost(err, "the worker that was dead")
	r.notComplete("r", "it has ended")
	_, err = r.Store.BeatRun(r.Context(), l)
	r.lost(err)
	r.workerIs(l.Owner, run.WorkerCompleted)
	r.workerIs(h.Owner, run.WorkerFailed)
	r.workerIs(released.Owner, run.WorkerIdle)
	r.Age(r, runStale)
	require.Equal(r, [2]int{}, r.rescue(runSys, 100), "nothing of it is left")
}

func runCompleteEmpty(r *runTest) {
	l := r.batches("r", 0)
	require.NoError(r, r.Store.EndHandOff(r.Context(), l, entry("HANDED_OFF")))
	ok, status, stats := r.complete("r")
	require.True(r, ok)
	require.Equal(r, run.RunCompleted, status)
	require.Empty(r, stats.Batches)
	r.start("c")
	r.must(r.Store.CancelRun(r.Context(), "c", entry("X")))
	ok, status, _ = r.complete("c")
	require.True(r, ok)
	require.Equal(r, run.RunCancelled, status)
}

func runCancelNothing(r *runTest) {
	r.start("other")
	l := r.batches("r", 0)
	require.NoError(r, r.Store.EndHandOff(r.Context(), l, entry("HANDED_OFF")))
	r.complete("r")
	for _, id := range []string{"r", "nobody", ""} {
		r.changesNothing(id, func() { r.mustNot(r.Store.CancelRun(r.Context(), id, entry("RUN_CANCEL"))) })
	}
}

func runFail(r *runTest) {
	r.start("none")
	r.must(r.Store.FailRun(r.Context(), "none", "its message is a dead letter", runStale, entry("RUN_FAIL")))
	found := r.read("none")
	require.Equal(r, []any{run.RunFailed, "its message is a dead letter"}, []any{found.Status, found.Error})
	r.recent(found.EndedAt)
	require.Equal(r, []string{"RUN_START", "RUN_FAIL"}, r.codes())
	require.False(r, r.claimsRun("none"))

	l := r.batches("dead", 1)
	r.Age(r, runStale)
	r.must(r.Store.FailRun(r.Context(), "dead", "x", runStale, entry("RUN_FAIL")))
	require.Equal(r, run.PendingQueue, r.batchOf(batchID("dead", 1)).Status, "its batches stay")
	r.workerIs(l.Owner, run.WorkerFailed)
	_, err := r.Store.BeatRun(r.Context(), l)
	r.lost(err)
	require.Equal(r, run.Ended, r.claim(batchID("dead", 1)).Answer)
}

func runFailNothing(r *runTest) {
	not := func(id, why string) {
		r.Helper()
		r.changesNothing(why, func() { r.mustNot(r.Store.FailRun(r.Context(), id, "x", runStale, entry("RUN_FAIL"))) })
	}
	l := r.batches("r", 0)
	r.Age(r, runAlmost)
	not("r", "its manager is alive")
	require.NoError(r, r.Store.EndHandOff(r.Context(), l, entry("X")))
	r.Age(r, runStale)
	not("r", "it is handed off")
	r.complete("r")
	not("r", "it has ended")
	r.start("f")
	r.must(r.Store.FailRun(r.Context(), "f", "first", runStale, entry("RUN_FAIL")))
	not("f", "it failed already")
	require.Equal(r, "first", r.read("f").Error)
}

func runResumeFailed(r *runTest) {
	l := r.batches("r", 1)
	r.changesNothing("it is running", func() { r.mustNot(r.Store.ResumeRun(r.Context(), "r", entry("RUN_RESUME"))) })
	r.must(r.Store.DeadLetter(r.Context(), batchID("r", 1), run.FirstAttempt, "a dead letter", runStale, entry("X")))
	r.Age(r, runStale)
	r.must(r.Store.FailRun(r.Context(), "r", "x", runStale, entry("RUN_FAIL")))
	r.must(r.Store.ResumeRun(r.Context(), "r", entry("RUN_RESUME")))
	found := r.read("r")
	require.Equal(r, []any{run.RunRunning, "", "", l.Epoch + 1, "w", 1},
		[]any{found.Status, found.Error, found.Owner, found.Epoch, found.Watermark, found.Batches})
	require.Zero(r, found.EndedAt)
	require.Equal(r, run.Failed, r.batchOf(batchID("r", 1)).Status, "it failed by itself")
	next := r.leaseRun("r")
	require.Equal(r, l.Epoch+2, next.Epoch)
	r.add(next, run.PendingQueue, []string{"it goes on"})
	codes := r.codes()
	require.Equal(r, []string{"RUN_FAIL", "RUN_RESUME"}, codes[len(codes)-2:])
}

// runResumeWaiting: a batch whose message is lost is sent at once.
func runResumeWaiting(r *runTest) {
	r.batches("other", 1)
	r.batches("r", 8)
	r.queued(r.batchOf(batchID("r", 2)), r.batchOf(batchID("r", 8)))
	r.unsent("x", true, r.batchOf(batchID("r", 3)), r.batchOf(batchID("r", 8)))
	r.queued(r.batchOf(batchID("r", 8)))
	r.finish(r.leaseBatch(batchID("r", 4)))
	require.NoError(r, r.Store.FailBatch(r.Context(), r.leaseBatch(batchID("r", 5)), "by itself", entry("X")))
	require.NoError(r, r.Store.ReleaseBatch(r.Context(), r.leaseBatch(batchID("r", 7)), entry("X")))
	r.Age(r, runStale)
	r.leaseBatch(batchID("r", 6))
	r.must(r.Store.FailRun(r.Context(), "r", "x", runStale, entry("X")))
	was := r.batchesOf("r")
	r.must(r.Store.ResumeRun(r.Context(), "r", entry("RUN_RESUME")))
	sent := []string{}
	for i, j := range r.batchesOf("r") {
		switch was[i].Status {
		case run.PendingQueue, run.Queued, run.PendingRetry:
			require.Equal(r, []any{run.PendingRetry, was[i].Attempt + 1, was[i].Epoch + 1, 0, ""},
				[]any{j.Status, j.Attempt, j.Epoch, j.QueueAttempts, j.LastQueueError}, "batch %d", j.Number)
			sent = append(sent, fmt.Sprint("r ", j.Number))
		default:
			require.Equal(r, was[i], j, "batch %d", j.Number)
		}
	}
	require.Equal(r, []string{"r 1", "r 2", "r 3", "r 8"}, sent)
	require.Subset(r, r.named(r.Store.ToSend(r.Context(), runSys, 100)), sent)
	require.Equal(r, []any{run.PendingQueue, 0},
		[]any{r.batchOf(batchID("other", 1)).Status, r.batchOf(batchID("other", 1)).Attempt}, "of another run")
	r.changesNothing("the message of before", func() { require.Zero(r, r.queued(was...)) })
}

func runResumeCancelled(r *runTest) {
	l := r.batches("r", 3)
	r.finish(r.leaseBatch(batchID("r", 1)))
	h := r.leaseBatch(batchID("r", 2))
	require.NoError(r, r.Store.FailBatch(r.Context(), h, "by itself", entry("X")))
	r.must(r.Store.CancelRun(r.Context(), "r", entry("X")))
	_, status, _ := r.complete("r")
	require.Equal(r, run.RunCancelled, status)
	was := r.batchOf(batchID("r", 3))
	r.must(r.Store.ResumeRun(r.Context(), "r", entry("RUN_RESUME")))
	found := r.read("r")
	require.Equal(r, []any{run.RunRunning, false, "", l.Epoch + 1},
		[]any{found.Status, found.Cancel, found.Owner, found.Epoch})
	require.Zero(r, found.EndedAt)
	require.Zero(r, found.HandedOffAt, "a manager sends the messages")
	again := r.batchOf(batchID("r", 3))
	require.Equal(r, []any{run.PendingRetry, "", ""}, []any{again.Status, again.Error, again.Owner})
	require.Equal(r, was.Attempt+1, again.Attempt, "the queue may have the message of the last attempt, or remember it")
	require.Equal(r, was.Epoch+1, again.Epoch)
	require.Equal(r, run.Completed, r.batchOf(batchID("r", 1)).Status)
	require.Equal(r, "by itself", r.batchOf(h.Batch).Error)
	require.Equal(r, run.Failed, r.batchOf(h.Batch).Status)
	r.finish(r.leaseBatch(again.ID))
	require.NoError(r, r.Store.EndHandOff(r.Context(), r.leaseRun("r"), entry("X")))
	ok, status, _ := r.complete("r")
	require.True(r, ok)
	require.Equal(r, run.RunCompletedWithFailures, status)
	r.mustNot(r.Store.ResumeRun(r.Context(), "r", entry("X")))
}

// runMany: a run may have more batches than a statement changes.
func runMany(r *runTest) {
	const n = 230
	r.batches("other", 1)
	l := r.batches("r", n)
	r.must(r.Store.CancelRun(r.Context(), "r", entry("X")))
	_, status, stats := r.complete("r")
	require.Equal(r, run.RunCancelled, status)
	require.Equal(r, map[run.BatchStatus]int{run.Failed: n}, stats.Batches)
	counts, err := r.Store.BatchCounts(r.Context(), "r")
	require.NoError(r, err)
	require.Equal(r, map[run.BatchStatus]int{run.Failed: n}, counts)
	r.must(r.Store.ResumeRun(r.Context(), "r", entry("X")))
	for _, j := range r.batchesOf("r") {
		require.Equal(r, []any{run.PendingRetry, 1, 1}, []any{j.Status, j.Attempt, j.Epoch}, "batch %d", j.Number)
	}
	require.Equal(r, l.Epoch+1, r.read("r").Epoch)
	require.Equal(r, run.PendingQueue, r.batchOf(batchID("other", 1)).Status)
}

func runStats(r *runTest) {
	r.batches("other", 2)
	r.batches("r", 4)
	r.finish(r.leaseBatch(batchID("r", 1)))
	h := r.leaseBatch(batchID("r", 2))
	r.save(h, invoice.OutcomeRetryScheduled, documentsOf("r", 2)[0])
	_, err := r.Store.MarkQueued(r.Context(), run.RunLease{}, []run.Batch{r.batchOf(batchID("r", 3))})
	require.NoError(r, err)
	stats, err := r.Store.Stats(r.Context(), "r")
	require.NoError(r, err)
	require.Equal(r,
		map[run.BatchStatus]int{run.Completed: 1, run.Processing: 1, run.Queued: 1, run.PendingQueue: 1}, stats.Batches)
	require.Equal(r,
		map[invoice.Outcome]int{invoice.OutcomeApplied: 2, invoice.OutcomeRetryScheduled: 1, "": 5}, stats.Outcomes)
	require.Equal(r, 3, stats.Done())
}

// audited are the calls that write an entry, each on a store of its own that is made ready for it.
func (r *runTest) audited() map[string]func(a run.Audit) func(ctx context.Context) error {
	changed := func(ok bool, err error) error {
		if err == nil && !ok {
			return fmt.Errorf("nothing was changed")
		}
		return err
	}
	s := r.Store
	l := r.batches("r", 6)
	for range 2 {
		r.unsent("x", true, r.batchOf(batchID("r", 6)))
	}
	refused := r.batchOf(batchID("r", 6))
	h1, h2, h3 := r.leaseBatch(batchID("r", 1)), r.leaseBatch(batchID("r", 2)), r.leaseBatch(batchID("r", 3))
	failed := r.leaseBatch(batchID("r", 5))
	require.NoError(r, s.FailBatch(r.Context(), failed, "x", entry("X")))
	r.start("fail")
	r.start("failed")
	r.must(s.FailRun(r.Context(), "failed", "x", runStale, entry("X")))
	r.start("cancelled")
	r.must(s.CancelRun(r.Context(), "cancelled", entry("X")))
	type call = func(ctx context.Context) error
	return map[string]func(run.Audit) func(context.Context) error{
		"start": func(a run.Audit) call {
			return func(ctx context.Context) error {
				return s.StartRun(ctx, run.Run{ID: "new", SysName: runSys}, a)
			}
		},
		"chunk": func(a run.Audit) call {
			return func(ctx context.Context) error {
				return s.AddChunk(ctx, l, run.Chunk{Batches: [][]string{{"new"}}, First: 7, Watermark: "new"}, a)
			}
		},
		"end hand-off": func(a run.Audit) call {
			return func(ctx context.Context) error { return s.EndHandOff(ctx, l, a) }
		},
		"complete": func(a run.Audit) call {
			return func(ctx context.Context) error {
				return changed(
					s.CompleteRun(ctx, "cancelled", runStale, func(run.RunStatus, run.Stats) run.Audit { return a }))
			}
		},
		"cancel": func(a run.Audit) call {
			return func(ctx context.Context) error { return changed(s.CancelRun(ctx, "r", a)) }
		},
		"fail": func(a run.Audit) call {
			return func(ctx context.Context) error { return changed(s.FailRun(ctx, "fail", "x", runStale, a)) }
		},
		"resume": func(a run.Audit) call {
			return func(ctx context.Context) error { return changed(s.ResumeRun(ctx, "failed", a)) }
		},
		"claim": func(a run.Audit) call {
			w := r.worker(RunBatchWorker)
			return func(ctx context.Context) error {
				c, err := s.ClaimBatch(ctx, batchID("r", 4), run.Ticket{}, w, runStale, a)
				return changed(c.Answer == run.Taken, err)
			}
		},
		"finish": func(a run.Audit) call {
			return func(ctx context.Context) error {
				_, err := s.FinishBatch(ctx, h1, func(run.BatchStats) run.Audit { return a })
				return err
			}
		},
		"release": func(a run.Audit) call {
			return func(ctx context.Context) error { return s.ReleaseBatch(ctx, h2, a) }
		},
		"fail batch": func(a run.Audit) call {
			return func(ctx context.Context) error { return s.FailBatch(ctx, h3, "x", a) }
		},
		"requeue": func(a run.Audit) call {
			return func(ctx context.Context) error { return changed(s.RequeueBatch(ctx, failed.Batch, a)) }
		},
		"dead letter": func(a run.Audit) call {
			return func(ctx context.Context) error {
				return changed(s.DeadLetter(ctx, batchID("r", 4), run.FirstAttempt, "x", runStale, a))
			}
		},
		"mark unsent": func(a run.Audit) call {
			return func(ctx context.Context) error {
				_, n, err := s.MarkUnsent(ctx, []run.Batch{refused}, "x", true, func(run.Batch) run.Audit { return a })
				return changed(n == 1, err)
			}
		},
		"write": func(a run.Audit) call {
			return func(ctx context.Context) error { return s.Write(ctx, a) }
		},
	}
}

// runWhole: with an entry that is no JSON, and with no table for it, nothing is changed; with a good one it is.
func runWhole(r *runTest) {
	bad := entry("BAD")
	bad.Detail = []byte(`{`)
	calls := r.audited()
	for name, call := range calls {
		r.changesNothing(name, func() { r.refused(call(bad)(r.Context()), "", name) })
	}
	if r.HideAudits != nil {
		was := r.state()
		restore := r.HideAudits(r)
		for name, call := range calls {
			err := call(entry("HIDDEN"))(r.Context())
			require.Equal(r, fault.Infrastructure, fault.KindOf(err), "%s: %v", name, err)
		}
		restore()
		require.Equal(r, was, r.state(), "no table for the entry")
	}
	for _, name := range []string{ // in an order in which all of them can
		"start", "chunk", "end hand-off", "complete", "fail", "resume", "claim", "finish", "release", "fail batch",
		"requeue", "mark unsent", "write",
		"cancel",
	} {
		n := len(r.Audits(r))
		require.NoError(r, calls[name](entry("GOOD"))(r.Context()), name)
		require.Len(r, r.Audits(r), n+1, name)
	}
}

func runEndedContext(r *runTest) {
	calls := map[string]func(ctx context.Context) error{}
	for name, call := range r.audited() {
		calls[name] = call(entry("NEVER"))
	}
	s := r.Store
	l := run.RunLease{Run: "r", Owner: r.read("r").Owner, Epoch: r.read("r").Epoch}
	j := r.batchOf(batchID("r", 1))
	h := run.BatchLease{Batch: j.ID, Run: "r", Owner: j.Owner, Epoch: j.Epoch}
	calls["run"] = func(ctx context.Context) error { _, _, err := s.Run(ctx, "r"); return err }
	calls["list runs"] = func(ctx context.Context) error { _, err := s.ListRuns(ctx, "", 1); return err }
	calls["stats"] = func(ctx context.Context) error { _, err := s.Stats(ctx, "r"); return err }
	calls["claim run"] = func(ctx context.Context) error {
		_, _, err := s.ClaimRun(ctx, "fail", 0, noEpoch, run.Worker{ID: "manager-never"}, runStale)
		return err
	}
	calls["beat run"] = func(ctx context.Context) error { _, err := s.BeatRun(ctx, l); return err }
	calls["known"] = func(ctx context.Context) error { _, err := s.Known(ctx, "r", []string{"a"}); return err }
	calls["release run"] = func(ctx context.Context) error { return s.ReleaseRun(ctx, l) }
	calls["beat batch"] = func(ctx context.Context) error { _, err := s.BeatBatch(ctx, h); return err }
	calls["save"] = func(ctx context.Context) error {
		return s.SaveOutcomes(ctx, h,
			[]run.ItemOutcome{{Document: documentsOf("r", 1)[0], Outcome: invoice.OutcomeGone}}, nil)
	}
	calls["batch"] = func(ctx context.Context) error { _, _, _, err := s.Batch(ctx, j.ID); return err }
	calls["list batches"] = func(ctx context.Context) error { _, err := s.ListBatches(ctx, "r", "", "", 1); return err }
	calls["items"] = func(ctx context.Context) error { _, err := s.Items(ctx, "r", nil, "", 1); return err }
	calls["unsent"] = func(ctx context.Context) error { _, err := s.Unsent(ctx, "r", 1); return err }
	calls["mark queued"] = func(ctx context.Context) error {
		_, err := s.MarkQueued(ctx, run.RunLease{}, []run.Batch{{ID: batchID("r", 4)}})
		return err
	}
	calls["to send"] = func(ctx context.Context) error { _, err := s.ToSend(ctx, runSys, 1); return err }
	calls["silence"] = func(ctx context.Context) error { _, err := s.RequeueSilent(ctx, runSys, 0, 1); return err }
	calls["rescue"] = func(ctx context.Context) error { _, _, err := s.Rescue(ctx, runSys, 0, 0, 1); return err }
	calls["open runs"] = func(ctx context.Context) error { _, err := s.OpenRuns(ctx, runSys, 1); return err }
	ctx := lateContext(r)
	for name, call := range calls {
		r.changesNothing(name, func() {
			err := call(ctx)
			require.Equal(r, fault.Infrastructure, fault.KindOf(err), "%s: %v", name, err)
			require.ErrorIs(r, err, context.Canceled, name)
		})
	}
}
