package conformance

import (
	"fmt"

	"github.com/stretchr/testify/require"

	"sqlwriter/internal/fault"
	"sqlwriter/internal/invoice"
	"sqlwriter/internal/run"
)

// runRaceCases are those about calls that are made at once.
func runRaceCases() []runCase {
	return []runCase{
		{"of 20 workers that claim one batch one gets it", raceClaim},
		{"of 20 workers that take over one batch one gets it", raceTakeOver},
		{"a worker finishes while another takes over: one of them does", raceFinish},
		{"a batch is claimed while its message is marked", raceQueued},
		{"of eight starts of one run one does", raceStart},
		{"of eight managers that claim one run one gets it", raceClaimRun},
		{"of eight chunks with one number one is added", raceChunk},
		{"of eight ends of one run one does", raceComplete},
		{"of eight requeues of one batch one does", raceRequeue},
		{"of eight dead letters of one batch one does", raceDeadLetter},
		{"a batch whose message is a dead letter is given another one: one of both", raceDeadLetterAgain},
		{"eight timers rescue each batch once", raceRescue},
		{"outcomes that are saved at once are all counted", raceSave},
	}
}

// oneOf requires that exactly one call won. The others lost, by their answer or as contention.
func (r *runTest) oneOf(won []bool, errs []error) int {
	r.Helper()
	winner := -1
	for i, err := range errs {
		if err != nil {
			require.Equal(r, fault.Contention, fault.KindOf(err), "%v", err)
			require.False(r, won[i])
			continue
		}
		if won[i] {
			require.Negative(r, winner, "two of them")
			winner = i
		}
	}
	require.GreaterOrEqual(r, winner, 0, "none of them")
	return winner
}

// count counts the entries of a code.
func (r *runTest) count(code string) int {
	r.Helper()
	n := 0
	for _, c := range r.codes() {
		if c == code {
			n++
		}
	}
	return n
}

// claimers are workers that claim one batch at once.
func (r *runTest) claimers(id string, n int) (winner run.Claimed) {
	r.Helper()
	workers := make([]run.Worker, n)
	for i := range workers {
		workers[i] = r.worker(RunBatchWorker)
	}
	ticket := ticketOf(r.batchOf(id))
	claims, errs := atOnce(n, func(i int) (run.Claimed, error) {
		return r.Store.ClaimBatch(r.Context(), id, ticket, workers[i], runStale, entry("RACE"))
	})
	won := make([]bool, n)
	for i, c := range claims {
		won[i] = c.Answer == run.Taken
		if errs[i] == nil && !won[i] {
			require.Equal(r, run.Busy, c.Answer)
		}
	}
	winner = claims[r.oneOf(won, errs)]
	require.Equal(r, 1, r.count("RACE"))
	running := 0
	for _, w := range r.Workers(r) {
		if w.Kind == RunBatchWorker && w.Status == run.WorkerRunning {
			running++
			require.Equal(r, winner.Lease.Owner, w.ID)
		}
	}
	require.Equal(r, 1, running, "a worker without a batch has no row")
	j := r.batchOf(id)
	require.Equal(r, []any{winner.Lease.Owner, winner.Lease.Epoch}, []any{j.Owner, j.Epoch})
	return winner
}

func raceClaim(r *runTest) {
	r.batches("r", 1)
	require.Equal(r, 1, r.claimers(batchID("r", 1), 20).Lease.Epoch)
}

func raceTakeOver(r *runTest) {
	r.batches("r", 1)
	h := r.leaseBatch(batchID("r", 1))
	r.Age(r, runStale)
	c := r.claimers(h.Batch, 20)
	require.Equal(r, 2, c.Lease.Epoch)
	require.True(r, c.TookOver)
	r.workerIs(h.Owner, run.WorkerFailed)
}

func raceFinish(r *runTest) {
	const n = 8
	r.batches("r", n)
	for i := range n {
		id := batchID("r", i+1)
		h := r.leaseBatch(id)
		r.save(h, invoice.OutcomeApplied, documentsOf("r", i+1)...)
		r.Age(r, runStale)
		w := r.worker(RunBatchWorker)
		won, errs := atOnce(2, func(k int) (bool, error) {
			if k == 0 {
				_, err := r.Store.FinishBatch(r.Context(), h, func(run.BatchStats) run.Audit {
					return entry("BATCH_DONE")
				})
				return err == nil, err
			}
			c, err := r.Store.ClaimBatch(r.Context(), id, run.Ticket{Epoch: noEpoch}, w, runStale, entry("BATCH_START"))
			return c.Answer == run.Taken, err
		})
		want := []run.BatchStatus{run.Completed, run.Processing}[r.oneOf(won, errs)]
		require.Equal(r, want, r.batchOf(id).Status)
	}
}

func raceQueued(r *runTest) {
	const n = 8
	r.batches("r", n)
	for i := range n {
		j, w := r.batchOf(batchID("r", i+1)), r.worker(RunBatchWorker)
		won, errs := atOnce(2, func(k int) (bool, error) {
			if k == 0 {
				_, err := r.Store.MarkQueued(r.Context(), run.RunLease{}, []run.Batch{j})
				return false, err
			}
			c, err := r.Store.ClaimBatch(r.Context(), j.ID, ticketOf(j), w, runStale, entry("BATCH_START"))
			return c.Answer == run.Taken, err
		})
		if errs[1] == nil { // contention claims nothing, and the message comes again
			require.Equal(r, 1, r.oneOf(won, errs), "it can be claimed before and after")
			require.Equal(r, run.Processing, r.batchOf(j.ID).Status)
		}
	}
}

func raceStart(r *runTest) {
	won := -1
	_, errs := atOnce(8, func(i int) (bool, error) {
		return true,
			r.Store.StartRun(r.Context(),
				run.Run{ID: "r", SysName: runSys, RequestedBy: fmt.Sprint(i)}, entry("RUN_START"))
	})
	for i, err := range errs {
		if err == nil {
			require.Negative(r, won, "two of them")
			won = i
			continue
		}
		r.refused(err, "run_exists")
	}
	require.Equal(r, fmt.Sprint(won), r.read("r").RequestedBy)
	require.Equal(r, []string{"RUN_START"}, r.codes())
}

func raceClaimRun(r *runTest) {
	r.start("r")
	managers := []run.Worker{}
	for range 8 {
		managers = append(managers, r.worker(RunManager))
	}
	claim := func(i int) (bool, error) {
		_, ok, err := r.Store.ClaimRun(r.Context(), "r", r.read("r").Epoch, noEpoch, managers[i], runStale)
		return ok, err
	}
	won, errs := atOnce(len(managers), claim)
	require.Equal(r, managers[r.oneOf(won, errs)].ID, r.read("r").Owner)
	require.Equal(r, 1, r.read("r").Epoch)
	require.Len(r, r.Workers(r), 1)
}

func raceChunk(r *runTest) {
	r.start("r")
	l := r.leaseRun("r")
	won, errs := atOnce(8, func(i int) (bool, error) {
		c := run.Chunk{
			Batches: [][]string{{fmt.Sprint(i, "a")}, {fmt.Sprint(i, "b")}}, First: 1, Watermark: fmt.Sprint(i),
		}
		err := r.Store.AddChunk(r.Context(), l, c, entry("BATCH_CREATED"))
		return err == nil, err
	})
	winner := r.oneOf(won, errs)
	found := r.read("r")
	require.Equal(r, []any{fmt.Sprint(winner), 2, 2}, []any{found.Watermark, found.Documents, found.Batches})
	require.Len(r, r.batchesOf("r"), 2)
	for _, it := range r.items("r") {
		require.Equal(r, fmt.Sprint(winner), it.Document[:1])
	}
	require.Equal(r, 1, r.count("BATCH_CREATED"))
}

func raceComplete(r *runTest) {
	l := r.batches("r", 1)
	r.finish(r.leaseBatch(batchID("r", 1)))
	require.NoError(r, r.Store.EndHandOff(r.Context(), l, entry("X")))
	r.oneOf(atOnce(8, func(int) (bool, error) {
		return r.Store.CompleteRun(r.Context(), "r", runStale, ended(entry("RUN_END")))
	}))
	require.Equal(r, 1, r.count("RUN_END"))
}

func raceRequeue(r *runTest) {
	r.batches("r", 1)
	h := r.leaseBatch(batchID("r", 1))
	require.NoError(r, r.Store.FailBatch(r.Context(), h, "x", entry("X")))
	r.oneOf(atOnce(8, func(int) (bool, error) {
		return r.Store.RequeueBatch(r.Context(), h.Batch, entry("BATCH_REQUEUE"))
	}))
	require.Equal(r, 1, r.count("BATCH_REQUEUE"))
	require.Equal(r, []int{h.Epoch + 1, 1}, []int{r.batchOf(h.Batch).Epoch, r.batchOf(h.Batch).Attempt})
}

func raceDeadLetter(r *runTest) {
	r.batches("r", 1)
	r.oneOf(atOnce(8, func(i int) (bool, error) {
		return r.Store.DeadLetter(r.Context(), batchID("r", 1), run.FirstAttempt, fmt.Sprint(i),
			runStale, entry("DEAD_LETTER"))
	}))
	require.Equal(r, 1, r.count("DEAD_LETTER"))
}

// raceDeadLetterAgain has each change that gives a batch another message come at once with the dead letter of the one
// before.
func raceDeadLetterAgain(r *runTest) {
	const n = 6
	for name, again := range map[string]func(sys string, j run.Batch) (int, error){
		"unsent": func(_ string, j run.Batch) (int, error) {
			retry, _, err := r.Store.MarkUnsent(r.Context(), []run.Batch{j}, "x", false, givenUp)
			return retry, err
		},
		"silence": func(sys string, _ run.Batch) (int, error) {
			return r.Store.RequeueSilent(r.Context(), sys, runSilent, 100)
		},
		"burial": func(sys string, _ run.Batch) (int, error) {
			rescued, _, err := r.Store.Rescue(r.Context(), sys, runStale, runReleased, 100)
			return rescued, err
		},
	} {
		batches := []batchAt{}
		for i := range n {
			in := map[string]situation{"unsent": inQueued, "silence": inQueuedLong, "burial": inProcessingDead}[name]
			batches = append(batches, r.bring(fmt.Sprint(name, i), in))
		}
		for _, b := range batches {
			won, errs := atOnce(2, func(k int) (bool, error) {
				if k == 0 {
					return r.For(b.sys).DeadLetter(r.Context(), b.batch.ID, b.batch.Attempt, "x",
						runStale, entry("DEAD_LETTER"))
				}
				changed, err := again(b.sys, b.batch)
				return changed == 1, err
			})
			j := r.batchOf(b.batch.ID)
			want := [][]any{{run.Failed, b.batch.Attempt}, {run.PendingRetry, b.batch.Attempt + 1}}[r.oneOf(won, errs)]
			require.Equal(r, want, []any{j.Status, j.Attempt}, name)
		}
	}
}

func raceRescue(r *runTest) {
	const n = 6
	r.batches("r", n)
	for i := range n {
		r.leaseBatch(batchID("r", i+1))
	}
	r.Age(r, runStale)
	rescued, errs := atOnce(8, func(int) (int, error) {
		batches, _, err := r.Store.Rescue(r.Context(), runSys, runStale, runReleased, 100)
		return batches, err
	})
	total := 0
	for i, err := range errs {
		if err != nil {
			require.Equal(r, fault.Contention, fault.KindOf(err), "%v", err)
			continue
		}
		total += rescued[i]
	}
	require.Equal(r, n, total)
	for _, j := range r.batchesOf("r") {
		require.Equal(r, []any{run.PendingRetry, 1}, []any{j.Status, j.Attempt})
	}
}

func raceSave(r *runTest) {
	docs := []string{}
	for i := range 16 {
		docs = append(docs, fmt.Sprint(i))
	}
	r.start("r")
	r.add(r.leaseRun("r"), run.PendingQueue, docs)
	h := r.leaseBatch(batchID("r", 1))
	_, errs := atOnce(8, func(i int) (bool, error) {
		outcomes := []run.ItemOutcome{
			{Document: docs[2*i], Outcome: invoice.OutcomeApplied},
			{Document: docs[2*i+1], Outcome: invoice.OutcomeGone},
		}
		return true, r.Store.SaveOutcomes(r.Context(), h, outcomes, nil)
	})
	saved := 0
	for _, err := range errs {
		if err != nil {
			require.Equal(r, fault.Contention, fault.KindOf(err), "%v", err)
			continue
		}
		saved += 2
	}
	require.Equal(r, saved, r.workerRow(h.Owner).Processed)
	require.Len(r, r.openOf(h), len(docs)-saved)
}
