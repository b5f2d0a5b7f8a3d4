package conformance

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/stretchr/testify/require"

	"sqlwriter/internal/fault"
	"sqlwriter/internal/run"
)

func runClaim(r *runTest) {
	r.start("r")
	w := r.worker(RunManager)
	found, ok, err := r.Store.ClaimRun(r.Context(), "r", 0, noEpoch, w, runStale)
	require.NoError(r, err)
	require.True(r, ok)
	r.recent(found.HeartbeatAt)
	require.Equal(r, []any{w.ID, 1, run.RunRunning}, []any{found.Owner, found.Epoch, found.Status})
	read := r.read("r")
	require.Equal(r, []any{w.ID, 1, found.HeartbeatAt}, []any{read.Owner, read.Epoch, read.HeartbeatAt})
	require.Equal(r,
		[]RunWorker{{ID: w.ID, Instance: w.Instance, Kind: RunManager, Status: run.WorkerRunning}}, r.Workers(r))
	r.Age(r, 5*time.Minute)
	require.InDelta(r, 5*time.Minute, r.read("r").Silent, float64(time.Minute))
}

func runNoClaim(r *runTest) {
	not := func(id string, epoch int, why string) {
		r.Helper()
		r.changesNothing(why, func() {
			_, ok, err := r.Store.ClaimRun(r.Context(), id, epoch, noEpoch, r.worker(RunManager), runStale)
			require.NoError(r, err)
			require.False(r, ok, why)
		})
	}
	r.start("epoch")
	not("epoch", 1, "another epoch than it has")
	r.leaseRun("epoch")
	not("epoch", 1, "its manager is alive")
	r.Age(r, 2*runStale)
	not("epoch", 0, "the epoch before the last claim")

	r.start("cancel")
	r.must(r.Store.CancelRun(r.Context(), "cancel", entry("X")))
	not("cancel", 0, "it is to be cancelled")
	r.must(r.Store.CompleteRun(r.Context(), "cancel", runStale, ended(entry("X"))))
	not("cancel", 0, "it has ended")

	r.start("off")
	l := r.leaseRun("off")
	require.NoError(r, r.Store.EndHandOff(r.Context(), l, entry("X")))
	not("off", 1, "it is handed off")
}

// must requires that something was changed.
func (r *runTest) must(ok bool, err error) {
	r.Helper()
	require.NoError(r, err)
	require.True(r, ok)
}

// mustNot requires that nothing was changed.
func (r *runTest) mustNot(ok bool, err error) {
	r.Helper()
	require.NoError(r, err)
	require.False(r, ok)
}

func runTakeOver(r *runTest) {
	r.start("r")
	first := r.leaseRun("r")
	r.Age(r, runAlmost)
	require.False(r, r.claimsRun("r"))
	r.Age(r, runAlmost)
	second := r.leaseRun("r")
	require.Equal(r, first.Epoch+1, second.Epoch)
	r.workerIs(first.Owner, run.WorkerFailed)
	r.workerIs(second.Owner, run.WorkerRunning)
	_, err := r.Store.BeatRun(r.Context(), first)
	r.lost(err)
	_, err = r.Store.BeatRun(r.Context(), second)
	require.NoError(r, err)
}

// loses has the run's manager die and another take over.
func (r *runTest) loses(id string) run.RunLease {
	r.Helper()
	r.Age(r, runStale)
	return r.leaseRun(id)
}

func runLostManagers(r *runTest) {
	r.start("other")
	r.leaseRun("other")
	r.start("r")
	l := r.leaseRun("r")
	count := func(want int, why string) {
		r.Helper()
		require.Equal(r, want, r.read("r").LostManagers, why)
	}
	count(0, "nobody had it")
	r.Age(r, runStale)
	found, ok, err := r.Store.ClaimRun(r.Context(), "r", l.Epoch, noEpoch, r.worker(RunManager), runStale)
	require.NoError(r, err)
	require.True(r, ok)
	require.Equal(r, 1, found.LostManagers, "the next manager gets the count")
	count(1, "one died")
	require.False(r, r.claimsRun("r"))
	count(1, "another wanted it")
	r.Age(r, runStale)
	r.rescue(runSys, 100)
	l = r.leaseRun("r")
	count(2, "rescued first")
	_, err = r.Store.BeatRun(r.Context(), l)
	require.NoError(r, err)
	count(2, "to live is no progress")
	require.NoError(r, r.Store.ReleaseRun(r.Context(), l))
	count(2, "nor is to let go")
	r.Age(r, runStale)
	l = r.leaseRun("r")
	count(2, "one that let go did not die")
	r.Age(r, runStale)
	found, ok, err = r.Store.ClaimRun(r.Context(), "r", l.Epoch, l.Epoch, r.worker(RunManager), runStale)
	require.NoError(r, err)
	require.True(r, ok)
	require.Equal(r, 2, found.LostManagers, "one that could not let go did not die")
	count(2, "one that could not let go did not die")
	l = r.loses("r")
	count(3, "one after another")
	r.lost(r.Store.AddChunk(r.Context(), l, run.Chunk{Batches: [][]string{{"late"}}, First: 2}))
	count(3, "a chunk that came to nothing")
	r.add(l, run.PendingQueue, []string{"it goes on"})
	count(0, "a chunk is progress")
	l = r.loses("r")
	count(1, "and the next one begins")
	r.add(l, run.Queued)
	count(0, "so is a watermark that moves")
	late := l
	l = r.loses("r")
	queued := func(by run.RunLease, batches ...run.Batch) {
		r.Helper()
		_, err := r.Store.MarkQueued(r.Context(), by, batches)
		require.NoError(r, err)
	}
	batch := r.batchOf(batchID("r", 1))
	queued(l)
	count(1, "no message at all")
	queued(run.RunLease{}, batch)
	count(1, "a message that the timer sent")
	queued(late, batch)
	queued(run.RunLease{Run: "r", Owner: l.Owner, Epoch: late.Epoch}, batch)
	queued(run.RunLease{Run: "other", Owner: l.Owner, Epoch: l.Epoch}, batch)
	count(1, "one that another manager sent")
	queued(l, batch)
	count(0, "a message is progress")
	l = r.loses("r")
	require.NoError(r, r.Store.EndHandOff(r.Context(), l, entry("HANDED_OFF")))
	count(0, "and the end")
	require.Zero(r, r.read("other").LostManagers, "another run")
}

func runLostManagersResumed(r *runTest) {
	r.batches("r", 1)
	r.loses("r")
	l := r.loses("r")
	require.NoError(r, r.Store.ReleaseRun(r.Context(), l))
	r.must(r.Store.FailRun(r.Context(), "r", "enough", runStale, entry("RUN_FAIL")))
	require.Equal(r, 2, r.read("r").LostManagers, "it says why")
	r.must(r.Store.ResumeRun(r.Context(), "r", entry("RUN_RESUME")))
	require.Zero(r, r.read("r").LostManagers)
	r.loses("r")
	require.Zero(r, r.read("r").LostManagers, "nobody had it")
	r.Age(r, runStale)
	r.must(r.Store.CancelRun(r.Context(), "r", entry("X")))
	require.False(r, r.claimsRun("r"))
	require.Zero(r, r.read("r").LostManagers, "a claim that came to nothing")
}

func runBeat(r *runTest) {
	r.start("r")
	l := r.leaseRun("r")
	for range 3 {
		r.Age(r, runAlmost)
		cancel, err := r.Store.BeatRun(r.Context(), l)
		require.NoError(r, err)
		require.False(r, cancel)
		r.recent(r.read("r").HeartbeatAt)
	}
	batches, workers, err := r.Store.Rescue(r.Context(), runSys, runStale, runReleased, 100)
	require.NoError(r, err)
	require.Zero(r, batches+workers, "its row of the workers is fresh, too")
	r.must(r.Store.CancelRun(r.Context(), "r", entry("RUN_CANCEL")))
	cancel, err := r.Store.BeatRun(r.Context(), l)
	require.NoError(r, err)
	require.True(r, cancel)
	require.True(r, r.read("r").Cancel)
	require.Equal(r, run.RunRunning, r.read("r").Status, "it ends by itself")
}

func runChunk(r *runTest) {
	r.start("r")
	l := r.leaseRun("r")
	r.Age(r, runAlmost)
	docs := [][]string{{"d", "a", "c"}, {"b"}}
	c := run.Chunk{Batches: docs, First: 1, Watermark: `{"at":1}`, Wait: 5 * time.Minute}
	first, second := entry("BATCH_CREATED"), entry("BATCH_CREATED")
	first.Batch, second.Batch = batchID("r", 1), batchID("r", 2)
	require.NoError(r, r.Store.AddChunk(r.Context(), l, c, first, second))
	found := r.read("r")
	r.recent(found.HeartbeatAt, "a chunk is a heartbeat")
	require.Equal(r, []any{`{"at":1}`, 4, 2}, []any{found.Watermark, found.Documents, found.Batches})
	require.InDelta(r, 5*time.Minute, found.NextIn, float64(time.Minute))
	require.Equal(r, []string{"RUN_START", "BATCH_CREATED", "BATCH_CREATED"}, r.codes())

	require.NoError(r,
		r.Store.AddChunk(r.Context(), l, run.Chunk{Batches: [][]string{{"e"}}, First: 3, Watermark: "2"}))
	found = r.read("r")
	require.Equal(r, []any{"2", 5, 3}, []any{found.Watermark, found.Documents, found.Batches})
	require.LessOrEqual(r, found.NextIn, time.Duration(0), "the next one need not wait")
	list := r.batchesOf("r")
	require.Len(r, list, 3)
	for i, j := range list {
		r.recent(j.CreatedAt)
		want := run.Batch{
			ID: batchID("r", i+1), Run: "r", Number: i + 1, Status: run.PendingQueue,
			Total: []int{3, 1, 1}[i], CreatedAt: j.CreatedAt,
		}
		require.Equal(r, want, j)
	}
	require.Equal(r, docs[0], r.claim(batchID("r", 1)).Open, "in their order")
}

func runBigChunk(r *runTest) {
	r.start("r")
	l := r.leaseRun("r")
	batches, ids := [][]string{}, []string{"not this"}
	for i := range 10 {
		docs := []string{}
		for n := range 100 {
			docs = append(docs, fmt.Sprintf("document %d of %d", n, i))
		}
		batches, ids = append(batches, docs), append(ids, docs...)
	}
	ids = append(ids, "nor this")
	r.add(l, run.PendingQueue, batches...)
	known, err := r.Store.Known(r.Context(), "r", ids)
	require.NoError(r, err)
	n := 0
	for _, id := range ids {
		if known[id] {
			n++
		}
	}
	require.Equal(r, 1000, n)
	require.False(r, known["not this"] || known["nor this"])
	require.Equal(r, []int{1000, 10}, []int{r.read("r").Documents, r.read("r").Batches})
	c := r.claim(batchID("r", 7))
	require.Equal(r, batches[6], c.Open)
	r.start("other")
	known, err = r.Store.Known(r.Context(), "other", ids)
	require.NoError(r, err)
	require.False(r, known[ids[1]], "another run has not")
	other := r.leaseRun("other")
	r.add(other, run.PendingQueue, batches[0])
}

func runEmptyChunk(r *runTest) {
	l := r.batches("r", 1)
	require.NoError(r, r.Store.AddChunk(r.Context(), l, run.Chunk{First: 2, Watermark: "further"}))
	require.Equal(r, []any{"further", 1, 2}, []any{r.read("r").Watermark, r.read("r").Batches, r.read("r").Documents})
}

func runLateChunk(r *runTest) {
	l := r.batches("r", 2)
	for name, c := range map[string]struct {
		l     run.RunLease
		first int
	}{
		"another epoch":       {run.RunLease{Run: "r", Owner: l.Owner, Epoch: l.Epoch - 1}, 3},
		"another manager":     {run.RunLease{Run: "r", Owner: "manager-0", Epoch: l.Epoch}, 3},
		"no manager":          {run.RunLease{Run: "r", Epoch: l.Epoch}, 3},
		"another run":         {run.RunLease{Run: "s", Owner: l.Owner, Epoch: l.Epoch}, 3},
		"a number once more":  {l, 2},
		"a number is left":    {l, 4},
		"numbers begin again": {l, 1},
	} {
		r.changesNothing(name, func() {
			chunk := run.Chunk{Batches: [][]string{{"new"}}, First: c.first, Watermark: "late", Wait: time.Hour}
			r.lost(r.Store.AddChunk(r.Context(), c.l, chunk, entry("BATCH_CREATED")), name)
		})
	}
	r.must(r.Store.CancelRun(r.Context(), "r", entry("RUN_CANCEL")))
	r.changesNothing("it is to end", func() {
		r.lost(
			r.Store.AddChunk(r.Context(), l, run.Chunk{Batches: [][]string{{"new"}}, First: 3}, entry("BATCH_CREATED")))
	})
}

func runKnownChunk(r *runTest) {
	l := r.batches("r", 2)
	r.changesNothing("known", func() {
		c := run.Chunk{Batches: [][]string{{"new"}, {"newer", documentsOf("r", 2)[1]}}, First: 3, Watermark: "late"}
		r.refused(r.Store.AddChunk(r.Context(), l, c, entry("BATCH_CREATED")), fault.CodeBug)
	})
	r.changesNothing("twice in one chunk", func() {
		c := run.Chunk{Batches: [][]string{{"new"}, {"new"}}, First: 3}
		r.refused(r.Store.AddChunk(r.Context(), l, c, entry("BATCH_CREATED")), "")
	})
	r.add(l, run.PendingQueue, []string{"new"})
}

func runImpossibleChunk(r *runTest) {
	r.start("r")
	l := r.leaseRun("r")
	many := []string{}
	for i := range 101 {
		many = append(many, fmt.Sprint(i))
	}
	for name, c := range map[string]run.Chunk{
		"more than 100": {Batches: [][]string{many}, First: 1},
		"none":          {Batches: [][]string{{}}, First: 1},
	} {
		r.changesNothing(name, func() {
			r.refused(r.Store.AddChunk(r.Context(), l, c, entry("BATCH_CREATED")), "", name)
		})
	}
	bad := entry("BATCH_CREATED")
	bad.Detail = json.RawMessage(`{`)
	r.changesNothing("no JSON", func() {
		c := run.Chunk{Batches: [][]string{{"a"}}, First: 1}
		r.refused(r.Store.AddChunk(r.Context(), l, c, entry("BATCH_CREATED"), bad), "")
	})
	r.add(l, run.PendingQueue, many[:100])
}

func runEndHandOff(r *runTest) {
	l := r.batches("r", 1)
	require.NoError(r, r.Store.EndHandOff(r.Context(), l, entry("HANDED_OFF")))
	found := r.read("r")
	r.recent(found.HandedOffAt)
	require.Equal(r, []any{"", run.RunRunning, l.Epoch}, []any{found.Owner, found.Status, found.Epoch})
	r.workerIs(l.Owner, run.WorkerCompleted)
	require.Equal(r, []string{"RUN_START", "HANDED_OFF"}, r.codes())
}

func runRelease(r *runTest) {
	l := r.batches("r", 1)
	require.NoError(r, r.Store.ReleaseRun(r.Context(), l))
	require.Equal(r, []any{"", run.RunRunning, l.Epoch},
		[]any{r.read("r").Owner, r.read("r").Status, r.read("r").Epoch})
	require.Zero(r, r.read("r").HandedOffAt)
	r.workerIs(l.Owner, run.WorkerIdle)
	next := r.leaseRun("r")
	require.Equal(r, l.Epoch+1, next.Epoch)
	r.workerIs(l.Owner, run.WorkerIdle)
	r.workerIs(next.Owner, run.WorkerRunning)
	r.add(next, run.PendingQueue, []string{"it goes on"})
}

func runLateManager(r *runTest) {
	late := func(l run.RunLease, why string) {
		r.Helper()
		next := r.read(l.Run).Batches + 1
		for name, call := range map[string]func() error{
			"beat": func() error { _, err := r.Store.BeatRun(r.Context(), l); return err },
			"chunk": func() error {
				return r.Store.AddChunk(r.Context(), l, run.Chunk{First: next}, entry("X"))
			},
			"end hand-off": func() error { return r.Store.EndHandOff(r.Context(), l, entry("X")) },
			"release":      func() error { return r.Store.ReleaseRun(r.Context(), l) },
		} {
			r.changesNothing(why+": "+name, func() { r.lost(call(), why, name) })
		}
	}
	l := r.batches("over", 1)
	r.Age(r, runStale)
	next := r.leaseRun("over")
	late(l, "taken over")
	late(run.RunLease{Run: "over", Owner: next.Owner, Epoch: next.Epoch - 1}, "another epoch")
	late(run.RunLease{Run: "over", Owner: "", Epoch: next.Epoch}, "no owner")
	require.NoError(r, r.Store.ReleaseRun(r.Context(), next))
	late(next, "released")
	late(run.RunLease{Run: "over", Owner: "", Epoch: next.Epoch}, "nobody's run has no nobody")
	next = r.leaseRun("over")
	require.NoError(r, r.Store.EndHandOff(r.Context(), next, entry("X")))
	late(next, "handed off")

	l = r.batches("fail", 1)
	r.Age(r, runStale)
	r.must(r.Store.FailRun(r.Context(), "fail", "dead letter", runStale, entry("X")))
	late(l, "failed")
	r.must(r.Store.ResumeRun(r.Context(), "fail", entry("X")))
	late(l, "resumed")

	l = r.batches("cancel", 1)
	r.must(r.Store.CancelRun(r.Context(), "cancel", entry("X")))
	r.must(r.Store.CompleteRun(r.Context(), "cancel", runStale, ended(entry("X"))))
	late(l, "cancelled")
}
