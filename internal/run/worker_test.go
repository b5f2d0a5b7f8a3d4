package run_test

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rs/zerolog"
	"github.com/stretchr/testify/require"

	"sqlwriter/internal/commit"
	"sqlwriter/internal/fault"
	"sqlwriter/internal/invoice"
	"sqlwriter/internal/run"
)

// batchMessage is the message of a run's nth batch as the trigger delivers it.
func (w *world) batchMessage(n, attempt int) run.Incoming {
	payload := run.Payload{
		Kind: run.BatchMessage, SysName: sysName, RunID: "run-1",
		BatchID: run.BatchID(sysName, "run-1", n), BatchAttempt: attempt,
	}
	m := payload.Outgoing(0)
	return run.Incoming{Body: m.Body, ID: m.ID, Count: 1, EnqueuedAt: time.Now()}
}

// handedOff starts a run that is handed off and whose messages are lost.
func (w *world) handedOff() {
	w.t.Helper()
	w.instance("manager").manage()
	w.start(run.Run{}, run.Filter{})
	w.until(time.Minute, "handed off", func() bool { return !w.run("run-1").HandedOffAt.IsZero() })
	w.batches.Lose()
}

func (w *world) batchOf(n int) run.Batch {
	w.t.Helper()
	batch, _, ok, err := w.store.Batch(context.Background(), run.BatchID(sysName, "run-1", n))
	require.NoError(w.t, err)
	require.True(w.t, ok)
	return batch
}

// The worker is away for twenty minutes at each of its uses of the store, and another takes the batch over. The first
// one then changes nothing.
func TestALateWorkerChangesNothing(t *testing.T) {
	t.Parallel()
	for _, op := range []string{"BeatBatch", "SaveOutcomes", "FinishBatch", "ReleaseBatch", "FailBatch"} {
		t.Run(op, func(t *testing.T) {
			simulate(t, func(t *testing.T, w *world) {
				w.fakeWrites(100)
				w.handedOff()
				w.frozen = true
				a := w.instance("a")
				first := true
				w.onUse(func(_ context.Context, i *instance, used string) error {
					if i == a && used == op && first {
						first = false
						time.Sleep(20 * time.Minute)
					}
					return nil
				})
				w.fake.during = func(ctx context.Context, i *instance) error {
					switch {
					case i != a:
						return nil
					case op == "ReleaseBatch":
						return unreachable()
					case op == "FailBatch":
						panic("of ours")
					case op == "BeatBatch":
						<-ctx.Done() // the late heartbeat finds the lease lost
						return fault.Wrap(fault.Infrastructure, "test: commit", "cancelled",
							"the caller gave up", context.Cause(ctx))
					}
					return nil
				}
				w.group.Go(func() {
					_, _ = a.invoke("BatchWorker", w.batchMessage(1, run.FirstAttempt), a.workers.Receive)
				})
				time.Sleep(5 * time.Minute)
				w.batches.PutBack(w.batchMessage(1, run.FirstAttempt)) // its lock is over
				w.batches.Signal()
				w.instance("b").work()
				w.waitForEnd("run-1", 10*time.Minute)
				before, rows := w.batchOf(1), w.store.Workers()
				audits := len(w.store.Audits())

				w.until(20*time.Minute, "the owner is back", func() bool { return len(w.callsOf(a)) == 1 })
				require.NoError(t, w.callsOf(a)[0].err)
				require.Equal(t, "late", w.callsOf(a)[0].done.Did)
				require.GreaterOrEqual(t, time.Since(w.run("run-1").StartedAt), 20*time.Minute)
				require.Equal(t, before, w.batchOf(1))
				require.Equal(t, rows, w.store.Workers())
				require.Len(t, w.store.Audits(), audits)
				require.Equal(t, 2, before.Epoch)
				w.addsUp("run-1", w.stats("run-1").Outcomes)
				status := map[string]run.WorkerStatus{}
				for _, row := range rows {
					status[row.Instance] = row.Status
				}
				require.Equal(t, run.WorkerFailed, status["a"])
				require.Equal(t, run.WorkerCompleted, status["b"])
			})
		})
	}
}

// It stops at its next heartbeat, and not at its deadline.
func TestAWorkerThatLostItsBatchStops(t *testing.T) {
	t.Parallel()
	simulate(t, func(t *testing.T, w *world) {
		w.fakeWrites(100)
		w.handedOff()
		a := w.instance("a")
		w.fake.during = func(ctx context.Context, _ *instance) error {
			<-ctx.Done()
			return fault.Wrap(fault.Infrastructure, "test: commit", "cancelled", "the caller gave up", ctx.Err())
		}
		begin := time.Now()
		w.group.Go(func() { _, _ = a.invoke("BatchWorker", w.batchMessage(1, run.FirstAttempt), a.workers.Receive) })
		time.Sleep(40 * time.Second) // and 10 since its last heartbeat
		c, err := w.store.ClaimBatch(t.Context(), w.batchOf(1).ID, run.Ticket{},
			run.Worker{ID: "worker-00000001", Instance: "b"}, time.Second, run.Audit{Action: run.CodeBatchStart})
		require.NoError(t, err)
		require.Equal(t, run.Taken, c.Answer)
		w.until(time.Minute, "it stopped", func() bool { return len(w.callsOf(a)) == 1 })
		require.Equal(t, time.Minute, w.callsOf(a)[0].end.Sub(begin))
		require.Equal(t, "late", w.callsOf(a)[0].done.Did)
		require.NoError(t, w.callsOf(a)[0].err)
		require.Equal(t, c.Lease.Owner, w.batchOf(1).Owner)
	})
}

// callsOf are the completed invocations of an instance.
func (w *world) callsOf(i *instance) []call {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(w.calls), func(c call) bool { return c.instance != i.name })
}

// The same for a manager, which is stale after two minutes.
func TestALateManagerChangesNothing(t *testing.T) {
	t.Parallel()
	for _, op := range []string{"Known", "AddChunk", "SendBatch", "MarkQueued", "Unsent", "EndHandOff"} {
		t.Run(op, func(t *testing.T) {
			simulate(t, func(t *testing.T, w *world) {
				w.fakeWrites(1250)
				w.frozen = true
				a := w.instance("a")
				var first atomic.Bool
				var until atomic.Int64 // its heartbeat is frozen, too
				w.onUse(func(_ context.Context, i *instance, used string) error {
					if i == a && used == op && first.CompareAndSwap(false, true) {
						until.Store(time.Now().Add(6 * time.Minute).UnixNano())
					}
					if i == a {
						time.Sleep(time.Until(time.Unix(0, until.Load())))
					}
					return nil
				})
				w.start(run.Run{}, run.Filter{})
				in, ok := w.runs.Take()
				require.True(t, ok)
				w.group.Go(func() { _, _ = a.invoke("BatchManager", in, a.manager.Receive) })
				time.Sleep(time.Minute)
				w.runs.PutBack(in) // its lock is over
				w.runs.Signal()
				w.instance("b").manage().work()
				w.waitForEnd("run-1", 4*time.Minute)
				w.addsUp("run-1", map[invoice.Outcome]int{invoice.OutcomeApplied: 1250})
				before, audits := w.run("run-1"), len(w.store.Audits())
				w.until(10*time.Minute, "it is back", func() bool { return len(w.callsOf(a)) == 1 })
				require.NoError(t, w.callsOf(a)[0].err)
				require.Equal(t, "late", w.callsOf(a)[0].done.Did)
				time.Sleep(10 * time.Minute)
				after := w.run("run-1")
				after.Silent = before.Silent
				require.Equal(t, before, after)
				require.Len(t, w.store.Audits(), audits)
				w.addsUp("run-1", map[invoice.Outcome]int{invoice.OutcomeApplied: 1250})
				require.Empty(t, w.runs.Messages())
				w.writtenOnce()
			})
		})
	}
}

func TestOneOfTwentyWorkersGetsTheBatch(t *testing.T) {
	t.Parallel()
	simulate(t, func(t *testing.T, w *world) {
		w.fakeWrites(100)
		w.handedOff()
		w.fake.delay = time.Minute
		for n := range 20 {
			i := w.instance(fmt.Sprint("w", n))
			w.group.Go(func() {
				_, _ = i.invoke("BatchWorker", w.batchMessage(1, run.FirstAttempt), i.workers.Receive)
			})
		}
		w.waitForEnd("run-1", 2*time.Minute)
		require.Equal(t, map[string]int{"committed": 1, "deferred": 19}, w.did("BatchWorker"))
		require.Equal(t, 1, w.batchOf(1).Epoch)
		require.Len(t, w.batches.Messages(), 1, "the nineteen are one: their ids are the same")
		w.addsUp("run-1", map[invoice.Outcome]int{invoice.OutcomeApplied: 100})
	})
}

func TestACancelledRunEndsItsBatchesAndMayBeResumed(t *testing.T) {
	t.Parallel()
	for _, handedOff := range []bool{true, false} {
		t.Run(fmt.Sprint("handed off ", handedOff), func(t *testing.T) {
			simulate(t, func(t *testing.T, w *world) {
				w.fakeWrites(1000)
				w.fake.delay = 2 * time.Minute
				if !handedOff {
					w.outstanding = 3
				}
				w.crew().tick()
				w.start(run.Run{}, run.Filter{})
				time.Sleep(3 * time.Minute)
				require.Equal(t, handedOff, !w.run("run-1").HandedOffAt.IsZero())
				w.must(w.store.CancelRun(t.Context(), "run-1", audit(run.CodeRunCancel)))
				require.Less(t, w.waitForEnd("run-1", 10*time.Minute), 6*time.Minute)
				r, stats := w.run("run-1"), w.stats("run-1")
				require.Equal(t, run.RunCancelled, r.Status)
				require.Equal(t, 200, stats.Outcomes[invoice.OutcomeApplied],
					"one was done, and the one that was running ends")
				require.Equal(t,
					map[run.BatchStatus]int{run.Completed: 2, run.Failed: r.Batches - 2}, nonzero(stats.Batches))
				for _, batch := range w.store.AllBatches() {
					if batch.Status == run.Failed {
						require.Equal(t, run.CancelledError, batch.Error)
					}
				}
				time.Sleep(20 * time.Minute)
				require.Equal(t, stats, w.stats("run-1"), "nothing of it happens any more")
				require.Empty(t, w.batches.Messages())
				require.Empty(t, w.runs.Messages())
				w.checkTransitions()

				w.must(w.store.ResumeRun(t.Context(), "run-1", audit(run.CodeRunResume)))
				w.waitForEnd("run-1", 40*time.Minute)
				w.addsUp("run-1", map[invoice.Outcome]int{invoice.OutcomeApplied: 1000})
				w.writtenOnce()
				w.nothingCounted()
			})
		})
	}
}

func TestAPanicInCommitFailsTheBatchBeforeTheMessageIsGivenBack(t *testing.T) {
	t.Parallel()
	for name, what := range map[string]func(){
		"a text":          func() { panic("content of a document") },
		"a runtime error": func() { var none *run.Run; none.Batches++ },
	} {
		t.Run(name, func(t *testing.T) {
			simulate(t, func(t *testing.T, w *world) {
				w.fakeWrites(200)
				w.handedOff()
				var log bytes.Buffer
				w.log = zerolog.New(&log)
				w.fake.during = func(context.Context, *instance) error { what(); return nil }
				i := w.instance("w")
				h, err := i.workers.Receive(t.Context(), w.batchMessage(1, run.FirstAttempt))
				require.Error(t, err)
				require.Equal(t, fault.Internal, fault.KindOf(err))
				require.Equal(t, "failed", h.Did)
				batch := w.batchOf(1)
				require.Equal(t, run.Failed, batch.Status)
				require.Contains(t, batch.Error, "panic")
				require.NotContains(t, batch.Error+err.Error()+h.Reason+log.String(), "content of a document")
				require.Regexp(t,
					`"event":"panic","run":"run-1","batch":"[^"]+",.*"stack":".*worker_test.go`, log.String())
				require.Equal(t, []string{run.CodeBatchCreated, run.CodeBatchStart, run.CodeBatchFail},
					w.codes("run-1", batch.ID))
				for _, row := range w.store.Workers() {
					require.NotEqual(t, run.WorkerRunning, row.Status)
				}
				h, err = i.workers.Receive(t.Context(), w.batchMessage(1, run.FirstAttempt))
				require.NoError(t, err)
				require.Equal(t, "skipped", h.Did)
				asked := w.asks()
				time.Sleep(5 * time.Minute)
				require.Equal(t, asked, w.asks(), "its heartbeat has ended")

				w.fake.during = nil
				_, err = i.workers.Receive(t.Context(), w.batchMessage(2, run.FirstAttempt))
				require.NoError(t, err)
				require.Equal(t, run.RunCompletedWithFailures, w.run("run-1").Status,
					"the last batch ends the run, failed ones or not")
			})
		})
	}
}

func TestABatchWithMissingOutcomesFails(t *testing.T) {
	t.Parallel()
	simulate(t, func(t *testing.T, w *world) {
		ids := w.fakeWrites(100)
		w.handedOff()
		w.fake.unreported[ids[7]], w.fake.unreported[ids[70]] = true, true
		h, err := w.instance("w").workers.Receive(t.Context(), w.batchMessage(1, run.FirstAttempt))
		require.NoError(t, err)
		require.Equal(t, "failed", h.Did)
		batch := w.batchOf(1)
		require.Equal(t, run.Failed, batch.Status)
		require.Contains(t, batch.Error, "2 of 100")
		require.Equal(t, []int{98, 0}, []int{batch.Success, batch.Failure})
		require.Equal(t, run.CodeBatchFail, w.codes("run-1", batch.ID)[2])
		require.Equal(t, run.RunCompletedWithFailures, w.run("run-1").Status)
	})
}

// A final refusal by the store fails the batch. A deferred batch would return for ever.
func TestABatchWhoseOutcomesCannotBeSavedFails(t *testing.T) {
	t.Parallel()
	for _, refused := range []string{"SaveOutcomes", "FinishBatch"} {
		simulate(t, func(t *testing.T, w *world) {
			w.fakeWrites(100)
			w.handedOff()
			w.onUse(func(_ context.Context, _ *instance, op string) error {
				if op == refused {
					return fault.New(fault.Internal, "test: store", "broken", "this always fails")
				}
				return nil
			})
			i := w.instance("w")
			h, err := i.workers.Receive(t.Context(), w.batchMessage(1, run.FirstAttempt))
			require.Equal(t, fault.Internal, fault.KindOf(err))
			require.Equal(t, "failed", h.Did)
			require.Equal(t, run.Failed, w.batchOf(1).Status)
			require.Contains(t, w.batchOf(1).Error, "this always fails")
			require.Equal(t, []string{run.CodeBatchCreated, run.CodeBatchStart, run.CodeBatchFail},
				w.codes("run-1", w.batchOf(1).ID))
			require.Empty(t, w.batches.Messages())
			require.Equal(t, run.RunCompletedWithFailures, w.run("run-1").Status)
		})
	}
}

func TestOutcomesAndErrorsAreStoredPerDocument(t *testing.T) {
	t.Parallel()
	simulate(t, func(t *testing.T, w *world) {
		ids := w.fakeWrites(9)
		w.fake.results = map[string]commit.DocumentResult{
			ids[0]: {Outcome: "applied"},
			ids[1]: {Outcome: "unchanged"},
			ids[2]: {Outcome: "superseded"},
			ids[3]: {Outcome: "gone"},
			ids[4]: {Outcome: "skipped"},
			ids[5]: {
				Line: 77, Outcome: "retry_scheduled", Kind: fault.Document, Code: "validation.too_long",
				Reason: "too long", RetryCount: 2, Again: true,
			},
			ids[6]: {Outcome: "failed", Kind: fault.Document, Code: "547", Reason: "a constraint", RetryCount: 5},
			ids[7]: {Outcome: "left", Kind: fault.Contention, Code: "1205", Reason: "a deadlock", Again: true},
			ids[8]: {Outcome: "failed", Kind: fault.Internal, Code: "panic", Reason: "ours", RetryCount: 5},
		}
		w.crew()
		w.start(run.Run{}, run.Filter{})
		w.waitForEnd("run-1", time.Minute)
		w.addsUp("run-1", map[invoice.Outcome]int{
			invoice.OutcomeApplied: 1, invoice.OutcomeUnchanged: 1, invoice.OutcomeSuperseded: 1,
			invoice.OutcomeGone: 1, invoice.OutcomeSkipped: 1, invoice.OutcomeRetryScheduled: 1, invoice.OutcomeLeft: 1,
			invoice.OutcomeFailed: 2,
		})
		require.Equal(t, 9, w.stats("run-1").Done())
		_, details, _, err := w.store.Batch(t.Context(), w.batchOf(1).ID)
		require.NoError(t, err)
		found := map[string]run.ErrorDetail{}
		for _, d := range details {
			d.At = time.Time{}
			found[d.Document] = d
		}
		require.Equal(t, map[string]run.ErrorDetail{
			ids[5]: {
				Document: ids[5], EntityID: 77, Code: "validation.too_long", Message: "too long",
				Type: run.TypeValidation, RetryCount: 2, Retryable: true,
			},
			ids[6]: {Document: ids[6], Code: "547", Message: "a constraint", Type: run.TypeMigration, RetryCount: 5},
			ids[7]: {Document: ids[7], Code: "1205", Message: "a deadlock", Type: run.TypeSystem, Retryable: true},
			ids[8]: {Document: ids[8], Code: "panic", Message: "ours", Type: run.TypeSystem, RetryCount: 5},
		}, found)
	})
}

// A deadlock in the store counts nothing.
func TestALostRaceInTheStoreIsRetried(t *testing.T) {
	t.Parallel()
	simulate(t, func(t *testing.T, w *world) {
		w.fakeWrites(300)
		var mu sync.Mutex
		uses := map[string]int{}
		w.onUse(func(_ context.Context, _ *instance, op string) error {
			mu.Lock()
			defer mu.Unlock()
			uses[op]++
			switch op {
			case "Page", "ReadMany", "Commit", "Load", "StoreControl", "SendRun", "SendBatch", "Keep":
				return nil
			}
			if uses[op]%2 == 0 {
				return nil
			}
			return fault.New(fault.Contention, "test: store", "1205", "a deadlock")
		})
		w.crew()
		w.start(run.Run{}, run.Filter{})
		w.waitForEnd("run-1", time.Minute)
		w.addsUp("run-1", map[invoice.Outcome]int{invoice.OutcomeApplied: 300})
		// A worker ends its batch first, and the invocation later, because ending has lost races of its own.
		w.until(time.Minute, "the invocations are over", func() bool { return len(w.ended("BatchWorker")) == 3 })
		require.Equal(t, map[string]int{"committed": 3}, w.did("BatchWorker"))
		w.nothingCounted()
	})
}

// The container does not answer for an hour.
func TestACosmosOutageCostsNothing(t *testing.T) {
	t.Parallel()
	simulate(t, func(t *testing.T, w *world) {
		ids := w.fill(150)
		w.crew().tick()
		var up atomic.Bool
		w.onUse(func(_ context.Context, _ *instance, op string) error {
			if !up.Load() && (op == "ReadMany" || op == "Record") {
				return fault.New(fault.Throttled, "test: read", "429", "too many requests")
			}
			return nil
		})
		w.start(run.Run{}, run.Filter{})
		time.Sleep(2 * time.Hour)
		up.Store(true)
		w.waitForEnd("run-1", 12*time.Minute)
		w.addsUp("run-1", map[invoice.Outcome]int{invoice.OutcomeApplied: 150})
		w.checkNothingSpent(ids)
		require.Greater(t, w.batchOf(1).Epoch, 50, "it was claimed and released all the time")
		require.Equal(t, []string{run.CodeBatchCreated, run.CodeBatchStart, run.CodeBatchReleased, run.CodeBatchDone},
			w.codes("run-1", w.batchOf(1).ID),
			"and says so once")
		require.Len(t, w.store.Workers(), 3, "one row for each thing that a process has")
	})
}

// A batch that kills its process cannot record that. Each deferral starts a new count of deliveries, so lost workers
// are counted.
func TestABatchThatKillsItsWorkersFails(t *testing.T) {
	t.Parallel()
	simulate(t, func(t *testing.T, w *world) {
		w.fakeWrites(100)
		w.handedOff()
		id := w.batchOf(1).ID
		for n := range 10 {
			c, err := w.store.ClaimBatch(t.Context(), id, run.Ticket{},
				run.Worker{ID: fmt.Sprintf("worker-%08x", n), Instance: "killed"}, 10*time.Minute,
				run.Audit{Action: run.CodeBatchStart})
			require.NoError(t, err)
			require.Equal(t, run.Taken, c.Answer)
			time.Sleep(11 * time.Minute)
		}
		i := w.instance("w")
		_, err := i.workers.Receive(t.Context(), w.batchMessage(1, run.FirstAttempt))
		require.Equal(t, "lost_workers", fault.CodeOf(err))
		batch := w.batchOf(1)
		require.Equal(t, run.Failed, batch.Status)
		require.Contains(t, batch.Error, "10 workers were lost")
		require.Equal(t, run.RunCompletedWithFailures, w.run("run-1").Status)

		w.must(w.store.RequeueBatch(t.Context(), id, run.Audit{Action: run.CodeBatchRequeue}))
		_, err = i.workers.Receive(t.Context(), w.batchMessage(1, w.batchOf(1).Attempt))
		require.NoError(t, err)
		require.Equal(t, run.Completed, w.batchOf(1).Status, "an operator may try it again")
	})
}

// Documents of a requeued batch that no worker ever had were finished by others, not by the run.
func TestDocumentsFinishedBeforeAnyClaimAreSkipped(t *testing.T) {
	t.Parallel()
	asked := audit(run.CodeBatchRequeue)
	for name, again := range map[string]func(t *testing.T, w *world) (bool, error){
		"requeued": func(t *testing.T, w *world) (bool, error) {
			_, err := w.instance("l").batchDead.Receive(t.Context(), w.deadLetter(1, run.FirstAttempt))
			require.NoError(t, err)
			require.Equal(t, run.Failed, w.batchOf(1).Status)
			return w.store.RequeueBatch(t.Context(), w.batchOf(1).ID, asked)
		},
		"resumed": func(t *testing.T, w *world) (bool, error) {
			w.must(w.store.CancelRun(t.Context(), "run-1", asked))
			_, err := w.store.CompleteRun(t.Context(), "run-1", time.Minute, func(run.RunStatus, run.Stats) run.Audit {
				return asked
			})
			require.NoError(t, err)
			return w.store.ResumeRun(t.Context(), "run-1", asked)
		},
	} {
		t.Run(name, func(t *testing.T) {
			simulate(t, func(t *testing.T, w *world) {
				w.fill(2)
				w.handedOff()
				ok, err := again(t, w)
				require.NoError(t, err)
				require.True(t, ok)
				w.put(1, "maker 1", `{"status":"committed","retry_count":0,"last_outcome":"applied"}`)
				_, err = w.instance("w").workers.Receive(t.Context(), w.batchMessage(1, w.batchOf(1).Attempt))
				require.NoError(t, err)
				require.Equal(t, 2, w.batchOf(1).Epoch)
				require.Equal(t, map[invoice.Outcome]int{invoice.OutcomeSkipped: 1, invoice.OutcomeApplied: 1},
					w.stats("run-1").Outcomes)
			})
		})
	}
}

// Neither the process nor the work ends.
func TestAPanicInAHeartbeatCostsOneHeartbeat(t *testing.T) {
	t.Parallel()
	for _, beat := range []struct{ op, during string }{{"BeatBatch", "Commit"}, {"BeatRun", "Page"}} {
		t.Run(beat.op, func(t *testing.T) {
			simulate(t, func(t *testing.T, w *world) {
				w.fakeWrites(100)
				var log bytes.Buffer
				w.log = zerolog.New(zerolog.SyncWriter(&log))
				var at atomic.Bool
				var panics, beats atomic.Int64
				w.onUse(func(_ context.Context, _ *instance, op string) error {
					switch {
					case op == beat.during:
						at.Store(true)
						time.Sleep(100 * time.Second)
						at.Store(false)
					case op == beat.op && at.Load():
						if beats.Add(1) < 3 {
							panics.Add(1)
							panic("content of a document")
						}
					}
					return nil
				})
				w.crew()
				w.start(run.Run{}, run.Filter{})
				w.waitForEnd("run-1", 5*time.Minute)
				w.addsUp("run-1", map[invoice.Outcome]int{invoice.OutcomeApplied: 100})
				require.EqualValues(t, 2, panics.Load())
				require.EqualValues(t, 3, beats.Load(), "the next one comes all the same")
				require.Equal(t, 2, strings.Count(log.String(), `"event":"panic"`), "%s", &log)
				require.Contains(t, log.String(), `"run":"run-1"`)
				require.NotContains(t, log.String(), "content of a document")
			})
		})
	}
}
