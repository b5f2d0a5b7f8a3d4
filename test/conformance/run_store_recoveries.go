package conformance

import (
	"fmt"
	"time"

	"github.com/stretchr/testify/require"

	"sqlwriter/internal/invoice"
	"sqlwriter/internal/run"
)

// runRecoveryCases are those about messages and about what was left behind.
func runRecoveryCases() []runCase {
	return []runCase{
		{"the batches whose message was not sent", recoveryUnsent},
		{"a message that was accepted makes its batch queued", recoveryQueued},
		{"a late queued changes nothing", recoveryLateQueued},
		{"a message that was not accepted makes its batch pending_retry", recoveryUnsentMark},
		{"a batch whose message was refused three times is failed", recoveryMaxAttempts},
		{"what is not counted is never too often", recoveryUncounted},
		{"many batches at once", recoveryMany},
		{"the batches whose message is to be sent", recoveryToSend},
		{"nothing is sent for runs that have ended or belong to others", recoveryNotToSend},
		{"what is on its way, of all running runs of the environment", recoveryOnTheWay},
		{"to send: grouped by run, by number, and no more than asked for", recoveryToSendOrder},
		{"batches that the queue has passed are sent again", recoverySilence},
		{"how far the queue is is asked of all runs", recoverySilenceOfRuns},
		{"batches that wait for workers are not lost", recoveryNotSilent},
		{"batches and workers that are dead", recoveryRescue},
		{"batches that were let go of", recoveryRescueReleased},
		{"the dead of others, and no more than asked for", recoveryRescueLimit},
		{"the runs that are open", recoveryOpenRuns},
	}
}

func recoveryUnsent(r *runTest) {
	r.batches("other", 2)
	r.batches("r", 12)
	r.leaseBatch(batchID("r", 2))
	_, err := r.Store.MarkQueued(r.Context(), run.RunLease{}, []run.Batch{r.batchOf(batchID("r", 4))})
	require.NoError(r, err)
	require.Equal(r, []string{"r 1", "r 3", "r 5"}, r.named(r.Store.Unsent(r.Context(), "r", 3)))
	require.Len(r, r.named(r.Store.Unsent(r.Context(), "r", 100)), 10)
	found, err := r.Store.Unsent(r.Context(), "r", 1)
	require.NoError(r, err)
	require.Equal(r, r.batchOf(batchID("r", 1)), found[0], "the whole row")
}

// named names batches.
func (r *runTest) named(batches []run.Batch, err error) []string {
	r.Helper()
	require.NoError(r, err)
	list := []string{}
	for _, j := range batches {
		list = append(list, fmt.Sprint(j.Run, " ", j.Number))
	}
	return list
}

// queued marks batches whose messages were accepted.
func (r *runTest) queued(batches ...run.Batch) int {
	r.Helper()
	n, err := r.Store.MarkQueued(r.Context(), run.RunLease{}, batches)
	require.NoError(r, err)
	return n
}

// unsent marks batches whose messages were not accepted.
func (r *runTest) unsent(reason string, counted bool, batches ...run.Batch) [2]int {
	r.Helper()
	retry, failed, err := r.Store.MarkUnsent(r.Context(), batches, reason, counted, givenUp)
	require.NoError(r, err)
	return [2]int{retry, failed}
}

// givenUp makes the entry of a batch that was refused too often: what it says of the batch is what the batch is then.
func givenUp(j run.Batch) run.Audit {
	a := entry("GIVEN_UP")
	a.Run, a.Batch = j.Run, j.ID
	a.Why = fmt.Sprint(j.Number, " ", j.Status, " ", j.Attempt, " ", j.QueueAttempts, " ",
		j.LastQueueError, ": ", j.Error)
	return a
}

func recoveryQueued(r *runTest) {
	r.batches("r", 3)
	r.unsent("x", true, r.batchOf(batchID("r", 2)))
	require.Equal(r, 2, r.queued(r.batchOf(batchID("r", 1)), r.batchOf(batchID("r", 2))))
	for n, attempt := range []int{0, 1} {
		j := r.batchOf(batchID("r", n+1))
		require.Equal(r, []any{run.Queued, attempt, attempt}, []any{j.Status, j.Attempt, j.QueueAttempts})
		r.recent(j.QueuedAt)
	}
	require.Equal(r, run.PendingQueue, r.batchOf(batchID("r", 3)).Status)
	require.Len(r, r.codes(), 1, "messages are no actions")
}

func recoveryLateQueued(r *runTest) {
	r.batches("r", 5)
	was := r.batchesOf("r")
	h := r.leaseBatch(batchID("r", 1))
	r.finish(r.leaseBatch(batchID("r", 2)))
	require.NoError(r, r.Store.FailBatch(r.Context(), r.leaseBatch(batchID("r", 3)), "x", entry("X")))
	r.unsent("x", false, was[3]) // its attempt is another one now
	r.queued(was[4])
	r.Age(r, runAlmost)
	r.changesNothing("late", func() { require.Zero(r, r.queued(was...)) })
	require.Equal(r, []any{run.Processing, h.Owner}, []any{r.batchOf(h.Batch).Status, r.batchOf(h.Batch).Owner})
	r.finish(h)
}

func recoveryUnsentMark(r *runTest) {
	r.batches("r", 6)
	was := r.batchesOf("r")
	r.queued(was[1])
	r.leaseBatch(batchID("r", 3))
	r.finish(r.leaseBatch(batchID("r", 4)))
	require.NoError(r, r.Store.FailBatch(r.Context(), r.leaseBatch(batchID("r", 5)), "x", entry("X")))
	n := len(r.codes())
	require.Equal(r, [2]int{2, 0}, r.unsent("the queue is full", true, was[:5]...))
	for i := range 2 {
		j := r.batchOf(was[i].ID)
		require.Equal(r, []any{run.PendingRetry, 1, 1, "the queue is full", ""},
			[]any{j.Status, j.Attempt, j.QueueAttempts, j.LastQueueError, j.Error})
	}
	require.Equal(r, []any{run.Processing, 0, ""},
		[]any{r.batchOf(was[2].ID).Status, r.batchOf(was[2].ID).Attempt, r.batchOf(was[2].ID).LastQueueError})
	require.Equal(r, []run.BatchStatus{run.Completed, run.Failed, run.PendingQueue},
		[]run.BatchStatus{r.batchOf(was[3].ID).Status, r.batchOf(was[4].ID).Status, r.batchOf(was[5].ID).Status})
	r.changesNothing("another attempt", func() { require.Equal(r, [2]int{}, r.unsent("late", true, was[0])) })
	require.Equal(r, [2]int{1, 0}, r.unsent("and again", true, r.batchOf(was[0].ID)), "one that is pending_retry")
	require.Equal(r, []any{2, 2, "and again"},
		[]any{r.batchOf(was[0].ID).Attempt, r.batchOf(was[0].ID).QueueAttempts, r.batchOf(was[0].ID).LastQueueError})
	require.Len(r, r.codes(), n)
}

func recoveryMaxAttempts(r *runTest) {
	require.Equal(r, 3, run.MaxQueueAttempts)
	r.batches("r", 2)
	id := batchID("r", 1)
	require.Equal(r, [2]int{1, 0}, r.unsent("one", true, r.batchOf(id)))
	was := r.batchOf(id)
	require.Equal(r, [2]int{1, 0}, r.unsent("two", true, was))
	r.changesNothing("another attempt", func() { require.Equal(r, [2]int{}, r.unsent("late", true, was)) })
	require.Equal(r, [2]int{1, 1}, r.unsent("three", true, r.batchOf(id), r.batchOf(batchID("r", 2))))
	require.Equal(r, []string{"RUN_START", "GIVEN_UP"}, r.codes(), "one of the two")
	given := r.Audits(r)[1]
	require.Equal(r, []string{"1 failed 3 3 three: Max queue retries exceeded", "r", id},
		[]string{given.Why, given.Run, given.Batch})
	j := r.batchOf(id)
	r.recent(j.EndedAt)
	require.Equal(r, []any{run.Failed, "Max queue retries exceeded", 3, "three"},
		[]any{j.Status, j.Error, j.QueueAttempts, j.LastQueueError})
	r.changesNothing("no more", func() { require.Equal(r, [2]int{}, r.unsent("four", true, j)) })

	r.must(r.Store.RequeueBatch(r.Context(), id, entry("X")))
	require.Zero(r, r.batchOf(id).QueueAttempts)
	require.Equal(r, [2]int{1, 0}, r.unsent("one", true, r.batchOf(id)), "it counts anew")
	r.queued(r.batchOf(id))
	require.Equal(r, [2]int{1, 0}, r.unsent("two", true, r.batchOf(id)))
	r.queued(r.batchOf(id))
	j = r.batchOf(id)
	require.Equal(r, [2]int{0, 1}, r.unsent("three", true, j, j), "a queued one, too, and once")
	require.Equal(r, 2, r.count("GIVEN_UP"))
}

func recoveryUncounted(r *runTest) {
	r.batches("r", 1)
	id := batchID("r", 1)
	r.unsent("one", true, r.batchOf(id))
	r.unsent("two", true, r.batchOf(id))
	for range 5 {
		require.Equal(r, [2]int{1, 0}, r.unsent("nobody knows", false, r.batchOf(id)))
	}
	require.Zero(r, r.count("GIVEN_UP"))
	require.Equal(r, []any{run.PendingRetry, 7, 2, "nobody knows"},
		[]any{r.batchOf(id).Status, r.batchOf(id).Attempt, r.batchOf(id).QueueAttempts, r.batchOf(id).LastQueueError})
}

func recoveryMany(r *runTest) {
	r.start("r")
	l := r.leaseRun("r")
	for c := range 5 {
		chunk := [][]string{}
		for i := range 50 {
			chunk = append(chunk, []string{fmt.Sprint(c, "-", i)})
		}
		r.add(l, run.PendingQueue, chunk...)
	}
	list := r.batchesOf("r")
	require.Len(r, list, 250)
	require.Equal(r, 125, r.queued(list[:125]...))
	require.Equal(r, 125, r.queued(list...), "the others")
	require.Equal(r, [2]int{250, 0}, r.unsent("x", true, list...))
	require.Equal(r, [2]int{}, r.unsent("x", true, list...))
	require.Len(r, r.named(r.Store.ToSend(r.Context(), runSys, 1000)), 250)
	list = r.batchesOf("r")
	r.unsent("x", true, list...)
	require.Equal(r, [2]int{0, 250}, r.unsent("x", true, r.batchesOf("r")...))
	require.Equal(r, 250, r.count("GIVEN_UP"))
}

func recoveryToSend(r *runTest) {
	r.batches("r", 5)
	r.queued(r.batchOf(batchID("r", 2)))
	r.unsent("x", true, r.batchOf(batchID("r", 3)))
	r.leaseBatch(batchID("r", 4))
	r.Age(r, runStale)
	require.Equal(r, []string{"r 3"}, r.named(r.Store.ToSend(r.Context(), runSys, 100)),
		"the others are the manager's, or somebody has them")
	r.changesNothing("asking", func() { r.named(r.Store.ToSend(r.Context(), runSys, 100)) })
	found, err := r.Store.ToSend(r.Context(), runSys, 100)
	require.NoError(r, err)
	require.Equal(r, r.batchOf(batchID("r", 3)), found[0], "the whole row")
}

func recoveryOnTheWay(r *runTest) {
	all := func(sysName string) run.OnTheWay {
		r.Helper()
		found, err := r.Store.OnTheWay(r.Context(), sysName)
		require.NoError(r, err)
		return found
	}
	require.Zero(r, all(runSys))
	r.batches("a", 6)
	r.queued(r.batchOf(batchID("a", 1)), r.batchOf(batchID("a", 2)))
	r.leaseBatch(batchID("a", 3))
	r.finish(r.leaseBatch(batchID("a", 4)))
	r.unsent("x", true, r.batchOf(batchID("a", 5)))
	l := r.batches("b", 1)
	r.queued(r.batchOf(batchID("b", 1)))
	require.NoError(r, r.Store.EndHandOff(r.Context(), l, entry("X")))
	r.batches("cancel", 1)
	r.leaseBatch(batchID("cancel", 1))
	r.must(r.Store.CancelRun(r.Context(), "cancel", entry("X")))
	r.batches("failed", 1)
	r.queued(r.batchOf(batchID("failed", 1)))
	r.Age(r, runStale)
	r.must(r.Store.FailRun(r.Context(), "failed", "x", runStale, entry("X")))
	r.batchesIn("dev", "theirs", 1)
	r.leaseBatch(run.BatchID("dev", "theirs", 1))
	require.Equal(r, run.OnTheWay{Busy: 5, Retry: 1, HandingOff: 1}, all(runSys))
	require.Equal(r, run.OnTheWay{Busy: 1, HandingOff: 1}, all("dev"))
	require.Zero(r, all("WEB"))
}

func recoveryNotToSend(r *runTest) {
	for _, id := range []string{"cancel", "failed"} {
		r.batches(id, 2)
		r.unsent("x", true, r.batchOf(batchID(id, 1)))
	}
	for _, sys := range []string{"WEB", "web2", "we"} {
		r.batchesIn(sys, "of "[:2]+sys, 1)
		batch, _, _, err := r.Store.Batch(r.Context(), run.BatchID(sys, "of"+sys, 1))
		require.NoError(r, err)
		r.unsent("x", true, batch)
	}
	r.Age(r, runStale)
	require.Len(r, r.named(r.Store.ToSend(r.Context(), runSys, 100)), 2)
	r.must(r.Store.CancelRun(r.Context(), "cancel", entry("X")))
	r.must(r.Store.FailRun(r.Context(), "failed", "x", runStale, entry("X")))
	require.Empty(r, r.named(r.Store.ToSend(r.Context(), runSys, 100)))
	require.Equal(r, []string{"ofWEB 1"}, r.named(r.Store.ToSend(r.Context(), "WEB", 100)))
}

func recoveryToSendOrder(r *runTest) {
	a, b := r.batches("a", 1), r.batches("b", 1)
	for n := 2; n <= 12; n++ { // their rows come by turns
		r.add(b, run.PendingQueue, documentsOf("b", n))
		r.add(a, run.PendingQueue, documentsOf("a", n))
	}
	r.unsent("x", true, append(r.batchesOf("a"), r.batchesOf("b")...)...)
	grouped := func(limit int) []run.Batch {
		r.Helper()
		batches, err := r.Store.ToSend(r.Context(), runSys, limit)
		require.NoError(r, err)
		seen, last := map[string]bool{}, run.Batch{}
		for _, j := range batches {
			if j.Run == last.Run {
				require.Greater(r, j.Number, last.Number)
			} else {
				require.False(r, seen[j.Run], "the batches of a run stand together")
			}
			seen[j.Run], last = true, j
		}
		return batches
	}
	require.Len(r, grouped(100), 24)
	require.Len(r, grouped(15), 15)
	require.Len(r, grouped(1), 1)
	require.Empty(r, grouped(0))
}

// silence counts the batches that are queued for too long.
func (r *runTest) silence(sysName string, limit int) int {
	r.Helper()
	n, err := r.Store.RequeueSilent(r.Context(), sysName, runSilent, limit)
	require.NoError(r, err)
	return n
}

// Where a batch that was queued later was claimed long ago, the queue has passed those before it.
func recoverySilence(r *runTest) {
	r.batches("r", 4)
	r.unsent("x", true, r.batchOf(batchID("r", 3)))
	r.queued(r.batchOf(batchID("r", 1)), r.batchOf(batchID("r", 2)))
	r.Age(r, time.Minute)
	r.queued(r.batchOf(batchID("r", 4)))
	r.finish(r.leaseBatch(batchID("r", 4)))
	r.Age(r, runSilent-2*time.Minute)
	r.changesNothing("not yet", func() { require.Zero(r, r.silence(runSys, 100)) })
	r.Age(r, 2*time.Minute)
	r.changesNothing("another environment", func() { require.Zero(r, r.silence("WEB", 100)) })
	require.Equal(r, 2, r.silence(runSys, 100))
	for n := range 2 {
		j := r.batchOf(batchID("r", n+1))
		require.Equal(r, []any{run.PendingRetry, 1, 0, ""},
			[]any{j.Status, j.Attempt, j.QueueAttempts, j.Error}, "not counted")
	}
	require.Equal(r, []any{run.PendingRetry, 1},
		[]any{r.batchOf(batchID("r", 3)).Status, r.batchOf(batchID("r", 3)).Attempt}, "it was pending_retry already")
	r.changesNothing("once", func() { require.Zero(r, r.silence(runSys, 100)) })
}

// Another run's batch also shows how far the queue is.
func recoverySilenceOfRuns(r *runTest) {
	r.batches("r", 2)
	r.queued(r.batchesOf("r")...)
	r.Age(r, time.Minute)
	r.batches("s", 1)
	r.queued(r.batchesOf("s")...)
	r.leaseBatch(batchID("s", 1))
	r.Age(r, runSilent)
	require.Equal(r, 1, r.silence(runSys, 1), "no more than asked for")
	require.Equal(r, 1, r.silence(runSys, 100))
	require.Zero(r, r.silence(runSys, 100))
}

// Batches that only wait for workers are not lost: as long as one that was queued before them is taken, none of them;
// where nobody takes any, one of them all is sent again, to see.
func recoveryNotSilent(r *runTest) {
	r.batches("r", 4)
	r.queued(r.batchesOf("r")...)
	r.Age(r, 2*runSilent)
	r.leaseBatch(batchID("r", 1))
	r.Age(r, runSilent-time.Minute)
	r.changesNothing("a batch was claimed", func() { require.Zero(r, r.silence(runSys, 100)) })
	r.Age(r, 2*time.Minute)
	require.Equal(r, 1, r.silence(runSys, 100), "nobody takes any")
	require.Equal(r, run.PendingRetry, r.batchOf(batchID("r", 2)).Status, "the first")
	r.Age(r, 2*runSilent)
	r.changesNothing("its message is not sent yet", func() { require.Zero(r, r.silence(runSys, 100)) })
	r.queued(r.batchOf(batchID("r", 2)))
	r.Age(r, runSilent-time.Minute)
	r.changesNothing("nobody takes that one", func() { require.Zero(r, r.silence(runSys, 100)) })
	r.leaseBatch(batchID("r", 2))
	r.Age(r, runSilent-time.Minute)
	r.changesNothing("the others may follow", func() { require.Zero(r, r.silence(runSys, 100)) })
	r.Age(r, 2*time.Minute)
	require.Equal(r, 2, r.silence(runSys, 100), "they were before it, and did not come")

	r.batches("again", 3)
	r.queued(r.batchOf(batchID("again", 1)))
	r.leaseBatch(batchID("again", 2))
	r.Age(r, runReleased)
	r.rescue(runSys, 100)
	r.queued(r.batchOf(batchID("again", 2)))
	r.Age(r, runSilent)
	r.leaseBatch(batchID("again", 3))
	require.Zero(r, r.silence(runSys, 100), "a claim of the attempt before says nothing of this one")

	r.batches("ended", 1)
	r.queued(r.batchOf(batchID("ended", 1)))
	r.Age(r, 2*runSilent)
	r.must(r.Store.FailRun(r.Context(), "ended", "x", runStale, entry("X")))
	r.silence(runSys, 100)
	require.Equal(r, run.Queued, r.batchOf(batchID("ended", 1)).Status, "its run has ended")
}

// rescue takes back the batches and workers whose heartbeats are stale.
func (r *runTest) rescue(sysName string, limit int) [2]int {
	r.Helper()
	batches, workers, err := r.Store.Rescue(r.Context(), sysName, runStale, runReleased, limit)
	require.NoError(r, err)
	return [2]int{batches, workers}
}

func recoveryRescue(r *runTest) {
	l := r.batches("r", 4)
	dead := r.leaseBatch(batchID("r", 1))
	done := r.leaseBatch(batchID("r", 3))
	r.finish(done)
	r.Age(r, runAlmost)
	alive := r.leaseBatch(batchID("r", 2))
	r.changesNothing("not yet", func() { require.Equal(r, [2]int{}, r.rescue(runSys, 100)) })
	r.Age(r, runStale-runAlmost)
	r.changesNothing("another environment", func() { require.Equal(r, [2]int{}, r.rescue("WEB", 100)) })
	started := r.batchOf(dead.Batch).StartedAt
	require.Equal(r, [2]int{1, 2}, r.rescue(runSys, 100), "a worker and the manager")
	j := r.batchOf(dead.Batch)
	require.Equal(r, []any{run.PendingRetry, 1, "", dead.Epoch, 0, ""},
		[]any{j.Status, j.Attempt, j.Owner, j.Epoch, j.QueueAttempts, j.Error})
	require.Equal(r, started, j.StartedAt)
	r.workerIs(dead.Owner, run.WorkerFailed)
	r.workerIs(l.Owner, run.WorkerFailed)
	r.workerIs(alive.Owner, run.WorkerRunning)
	r.workerIs(done.Owner, run.WorkerCompleted)
	require.Equal(r, run.Processing, r.batchOf(alive.Batch).Status)
	require.Equal(r, run.PendingQueue, r.batchOf(batchID("r", 4)).Status)
	r.changesNothing("once", func() { require.Equal(r, [2]int{}, r.rescue(runSys, 100)) })
	next := r.leaseBatch(dead.Batch)
	require.Equal(r, dead.Epoch+1, next.Epoch)
	r.finish(next)
}

func recoveryRescueReleased(r *runTest) {
	r.batches("r", 1)
	h := r.leaseBatch(batchID("r", 1))
	r.save(h, invoice.OutcomeApplied, r.openOf(h)[0])
	require.NoError(r, r.Store.ReleaseBatch(r.Context(), h, entry("X")))
	require.NoError(r, r.Store.ReleaseRun(r.Context(), run.RunLease{Run: "r", Owner: r.read("r").Owner, Epoch: 1}))
	r.Age(r, runReleased-2*time.Minute)
	r.changesNothing("its message is on its way", func() { require.Equal(r, [2]int{}, r.rescue(runSys, 100)) })
	r.Age(r, 2*time.Minute)
	require.Equal(r, [2]int{1, 0}, r.rescue(runSys, 100))
	require.Equal(r, []any{run.PendingRetry, 1}, []any{r.batchOf(h.Batch).Status, r.batchOf(h.Batch).Attempt})
	r.workerIs(h.Owner, run.WorkerIdle)
	c := r.claim(h.Batch)
	require.Equal(r, run.Taken, c.Answer)
	require.Equal(r, h.Epoch+1, c.Lease.Epoch)
}

func recoveryRescueLimit(r *runTest) {
	for _, sys := range []string{runSys, "WEB"} {
		r.batchesIn(sys, "r"+sys, 3)
		for n := range 3 {
			require.Equal(r, run.Taken, r.claim(run.BatchID(sys, "r"+sys, n+1)).Answer)
		}
	}
	r.Age(r, runStale)
	require.Equal(r, 2, r.rescue(runSys, 2)[0])
	require.Equal(r, 1, r.rescue(runSys, 2)[0])
	require.Zero(r, r.rescue(runSys, 2)[0])
	for range 5 {
		r.rescue(runSys, 2)
	}
	failed := 0
	for _, w := range r.Workers(r) {
		if w.Status == run.WorkerFailed {
			failed++
		}
	}
	require.Equal(r, 4, failed, "of the one environment")
	require.Equal(r, [2]int{3, 4}, r.rescue("WEB", 100))
}

func recoveryOpenRuns(r *runTest) {
	for i := range 4 {
		r.start(fmt.Sprint("r", i))
	}
	r.startIn("WEB", "other")
	r.must(r.Store.FailRun(r.Context(), "r1", "x", runStale, entry("X")))
	r.must(r.Store.CancelRun(r.Context(), "r2", entry("X")))
	open := func(limit int) []string {
		r.Helper()
		found, err := r.Store.OpenRuns(r.Context(), runSys, limit)
		require.NoError(r, err)
		ids := []string{}
		for _, f := range found {
			ids = append(ids, f.ID)
		}
		return ids
	}
	require.Equal(r, []string{"r0", "r2", "r3"}, open(100), "one that is to end has still to")
	require.Equal(r, []string{"r0", "r2"}, open(2))
	require.Empty(r, open(0))
	l := r.leaseRun("r3")
	require.NoError(r, r.Store.EndHandOff(r.Context(), l, entry("X")))
	require.Equal(r, []string{"r0", "r2", "r3"}, open(100), "handed off is not ended")
	r.complete("r3")
	require.Equal(r, []string{"r0", "r2"}, open(100))
}
