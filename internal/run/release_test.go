package run_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"sqlwriter/internal/fault"
	"sqlwriter/internal/invoice"
	"sqlwriter/internal/run"
)

// SQL was away when the worker released its batch. The message that shows its epoch takes the batch over at once.
func TestAnUnreleasedBatchIsTakenOverAtOnce(t *testing.T) {
	t.Parallel()
	simulate(t, func(t *testing.T, w *world) {
		w.fakeWrites(100)
		w.instance("m").manage()
		i := w.instance("w")
		w.fake.during = func(context.Context, *instance) error {
			w.sql(false)
			return unreachable()
		}
		w.start(run.Run{}, run.Filter{})
		w.until(time.Minute, "handed off", func() bool { return !w.run("run-1").HandedOffAt.IsZero() })
		i.work()
		w.until(time.Minute, "deferred", func() bool { return w.did("BatchWorker")["deferred"] == 1 })
		require.NotEmpty(t, w.batchOf(1).Owner, "the release failed")
		w.fake.mu.Lock()
		w.fake.during = nil
		w.fake.mu.Unlock()
		w.sql(true)
		w.waitForEnd("run-1", 90*time.Second) // well before its heartbeat is old
		w.addsUp("run-1", map[invoice.Outcome]int{invoice.OutcomeApplied: 100})
		require.Zero(t, w.lostWorkers())
	})
}

// A message without the owner's epoch gets nothing from an owner that could not write. The breaker must have been
// closed for as long as the silence.
func TestNoOwnerIsStaleUntilTheBreakerWasClosedForLong(t *testing.T) {
	t.Parallel()
	simulate(t, func(t *testing.T, w *world) {
		w.fakeWrites(100)
		w.handedOff()
		a, b := w.instance("a"), w.instance("b")
		w.fake.during = func(_ context.Context, i *instance) error {
			if i == a {
				i.killAfter(0)
			}
			return nil
		}
		_, alive := a.invoke("BatchWorker", w.batchMessage(1, run.FirstAttempt), a.workers.Receive)
		require.False(t, alive)
		w.openBreaker(3 * time.Hour)
		time.Sleep(3 * time.Hour)
		require.NoError(t, b.breaker.Tick(t.Context()))
		time.Sleep(9 * time.Minute)
		h, err := b.workers.Receive(t.Context(), w.batchMessage(1, run.FirstAttempt))
		require.NoError(t, err)
		require.Equal(t, []string{"deferred", "another worker has it"}, []string{h.Did, h.Reason})
		require.Zero(t, w.lostWorkers())
		time.Sleep(time.Minute)
		h, err = b.workers.Receive(t.Context(), w.batchMessage(1, run.FirstAttempt))
		require.NoError(t, err)
		require.Equal(t, "committed", h.Did)
		require.Equal(t, 1, w.lostWorkers(), "its message came back without the epoch")
	})
}

func TestAnOutdatedMessageIsDropped(t *testing.T) {
	t.Parallel()
	simulate(t, func(t *testing.T, w *world) {
		w.fakeWrites(100)
		w.handedOff()
		_, _, err := w.store.MarkUnsent(t.Context(), []run.Batch{w.batchOf(1)}, "unknown", false, nil)
		require.NoError(t, err)
		i := w.instance("w")
		h, err := i.workers.Receive(t.Context(), w.batchMessage(1, run.FirstAttempt))
		require.NoError(t, err)
		require.Equal(t, "skipped", h.Did)
		require.Equal(t, run.PendingRetry, w.batchOf(1).Status)
		h, err = i.workers.Receive(t.Context(), w.batchMessage(1, w.batchOf(1).Attempt))
		require.NoError(t, err)
		require.Equal(t, "committed", h.Did)
	})
}

// A run that only waits for workers is not sent again. In six hours one message each half hour is sent for the whole
// environment, to detect a queue that lost its messages.
func TestARunThatWaitsForWorkersIsNotSentAgain(t *testing.T) {
	t.Parallel()
	simulate(t, func(t *testing.T, w *world) {
		w.fakeWrites(500)
		w.batchSize = 5
		w.instance("m").manage()
		w.instance("timer").tick()
		w.start(run.Run{}, run.Filter{})
		time.Sleep(6 * time.Hour)
		require.LessOrEqual(t, len(w.batches.sendings()), 16+13)
		require.LessOrEqual(t, w.maxOnTheWay(), 16)
		attempts := 0
		for _, batch := range w.store.AllBatches() {
			if batch.Attempt > run.FirstAttempt {
				attempts++
			}
		}
		require.LessOrEqual(t, attempts, 1)
		w.instance("w").work().work()
		w.waitForEnd("run-1", time.Hour)
		w.addsUp("run-1", map[invoice.Outcome]int{invoice.OutcomeApplied: 500})
		w.nothingCounted()
		require.LessOrEqual(t, len(w.batches.sendings()), 100+13)
	})
}

// A long run leaves a part of the limit to a short one.
func TestRunsShareTheOutstandingLimit(t *testing.T) {
	t.Parallel()
	simulate(t, func(t *testing.T, w *world) {
		w.fakeWrites(10_000)
		w.fake.delay = 10 * time.Second
		w.instance("m1").manage()
		w.instance("m2").manage()
		w.instance("timer").tick()
		for n := range 4 {
			w.instance(fmt.Sprint("w", n)).work()
		}
		w.start(run.Run{ID: "run-1"}, run.Filter{})
		time.Sleep(30 * time.Second)
		w.start(run.Run{ID: "run-2", Limit: 500}, run.Filter{})
		delay := w.waitForEnd("run-2", 5*time.Minute)
		require.Equal(t, run.RunRunning, w.run("run-1").Status, "after %s", delay)
		w.waitForEnd("run-1", time.Hour)
		require.LessOrEqual(t, w.maxOnTheWay(), 17, "two managers that look at once may each send one more")
		require.GreaterOrEqual(t, w.maxOnTheWay(), 16)
	})
}

// A batch that waits for another instance's turn comes again, however often: nobody is lost, and one line of the audit
// says so.
func TestABatchThatWaitsForAnotherWriterComesAgain(t *testing.T) {
	t.Parallel()
	simulate(t, func(t *testing.T, w *world) {
		const waits = 30
		w.fakeWrites(100)
		n := 0
		w.fake.during = func(context.Context, *instance) error {
			if n++; n > waits {
				return nil
			}
			err := fault.New(fault.Infrastructure, "sqlserver: apply", "one_writer", "waiting: another instance writes")
			err.Condition = fault.Waits
			return err
		}
		w.crew()
		w.start(run.Run{}, run.Filter{})
		w.waitForEnd("run-1", time.Hour)
		w.addsUp("run-1", map[invoice.Outcome]int{invoice.OutcomeApplied: 100})
		w.nothingCounted()
		require.Equal(t, waits, w.did("BatchWorker")["deferred"])
		require.Zero(t, w.lostWorkers())
		told := 0
		for _, a := range w.store.Audits() {
			if a.Action == run.CodeBatchReleased {
				told++
			}
		}
		require.Equal(t, 1, told)
	})
}

// Contention never ends a line's rewrite: the batch is tried again.
func TestAReindexRetriesLostRaces(t *testing.T) {
	t.Parallel()
	simulate(t, func(t *testing.T, w *world) {
		w.fakeWrites(300)
		begin := time.Now()
		w.fake.during = func(context.Context, *instance) error {
			if time.Since(begin) < time.Hour {
				return fault.New(fault.Contention, "test: sql", "1222", "a lock is held")
			}
			return nil
		}
		w.crew().tick()
		w.start(run.Run{Kind: run.Reindex}, run.Filter{})
		w.waitForEnd("run-1", 65*time.Minute)
		w.addsUp("run-1", map[invoice.Outcome]int{invoice.OutcomeApplied: 300})
		require.Zero(t, w.lostWorkers())
		w.nothingCounted()
	})
}

// One committed document breaks its connection each time. The others of its batch are written at once, and the run
// ends.
func TestADocumentThatAlwaysFailsLikeAnOutageEndsItsRun(t *testing.T) {
	t.Parallel()
	for _, kind := range []run.Kind{run.Reindex, run.Reapply} {
		simulate(t, func(t *testing.T, w *world) {
			w.fill(5)
			w.crew().tick()
			w.start(run.Run{}, run.Filter{})
			w.waitForEnd("run-1", time.Minute)
			w.breaks = docID(3)
			w.start(run.Run{ID: "run-2", Kind: kind}, run.Filter{})
			time.Sleep(5 * time.Minute)
			require.Equal(t, run.RunRunning, w.run("run-2").Status, "it is tried again")
			require.Equal(t, 4, w.stats("run-2").Done())
			w.waitForEnd("run-2", time.Hour)
			require.Equal(t, 1, w.stats("run-2").Outcomes[invoice.OutcomeFailed])
			require.Equal(t, invoice.Committed, w.state(docID(3)).Status)
			require.Zero(t, w.lostWorkers())
		})
	}
}

func TestRequeuedBatchesAreSentWithinTheLimit(t *testing.T) {
	t.Parallel()
	simulate(t, func(t *testing.T, w *world) {
		w.fakeWrites(10_000)
		broken := true
		w.fake.during = func(context.Context, *instance) error {
			if broken {
				return fault.New(fault.Internal, "test: commit", "broken", "ours")
			}
			return nil
		}
		w.crew()
		w.start(run.Run{}, run.Filter{})
		w.waitForEnd("run-1", 10*time.Minute)
		require.Equal(t, run.RunCompletedWithFailures, w.run("run-1").Status)
		w.fake.mu.Lock()
		broken = false
		w.fake.mu.Unlock()
		for _, batch := range w.store.AllBatches() {
			w.must(w.store.RequeueBatch(t.Context(), batch.ID, audit(run.CodeBatchRequeue)))
		}
		var most atomic.Int64
		w.onUse(func(ctx context.Context, _ *instance, _ string) error {
			all, err := w.store.OnTheWay(ctx, sysName)
			most.Store(max(most.Load(), int64(all.Busy)))
			return err
		})
		w.instance("timer").tick()
		before := len(w.batches.sendings())
		w.notify("run-1")
		w.waitForEnd("run-1", 10*time.Minute)
		w.addsUp("run-1", map[invoice.Outcome]int{invoice.OutcomeApplied: 10_000})
		require.Equal(t, 100, len(w.batches.sendings())-before)
		require.EqualValues(t, 16, most.Load())
	})
}

// A worker stores outcomes and ends its batch and run, whatever the breaker says.
func TestStartedWorkIsFinishedWhileTheBreakerIsOpen(t *testing.T) {
	t.Parallel()
	simulate(t, func(t *testing.T, w *world) {
		w.fakeWrites(100)
		w.handedOff()
		w.fake.during = func(context.Context, *instance) error {
			w.openBreaker(time.Hour)
			time.Sleep(10 * time.Second) // the instance's own copy is read again
			return nil
		}
		h, err := w.instance("w").workers.Receive(t.Context(), w.batchMessage(1, run.FirstAttempt))
		require.NoError(t, err)
		require.Equal(t, "committed", h.Did)
		w.addsUp("run-1", map[invoice.Outcome]int{invoice.OutcomeApplied: 100})
	})
}

// SQL is not used at all.
func TestRunsStartNothingWhileTheBreakerIsOpen(t *testing.T) {
	t.Parallel()
	simulate(t, func(t *testing.T, w *world) {
		w.fakeWrites(200)
		w.handedOff()
		w.start(run.Run{ID: "run-2"}, run.Filter{})
		w.runs.Lose()
		i := w.instance("i")
		w.openBreaker(time.Hour)
		w.onUse(func(_ context.Context, _ *instance, op string) error {
			require.NotEqual(t, "Rescue", op)
			return nil
		})
		asked := w.asks()
		m := run.RunPayload(w.run("run-2")).Outgoing(0)
		for _, receive := range []func() (run.Handled, error){
			func() (run.Handled, error) {
				return i.workers.Receive(t.Context(), w.batchMessage(1, run.FirstAttempt))
			},
			func() (run.Handled, error) {
				return i.manager.Receive(t.Context(),
					run.Incoming{Body: m.Body, ID: m.ID, Count: 1, EnqueuedAt: time.Now()})
			},
		} {
			h, err := receive()
			require.NoError(t, err)
			require.Equal(t, "deferred", h.Did)
			require.Equal(t, 300, h.Counts["delay_s"]/30*30, "as long as the breaker says, within five minutes")
		}
		done, err := i.recovery.Run(t.Context())
		require.NoError(t, err)
		require.NotEmpty(t, done.Off)
		require.Equal(t, asked, w.asks())
	})
}
