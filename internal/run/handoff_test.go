package run_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"sqlwriter/internal/fault"
	"sqlwriter/internal/invoice"
	"sqlwriter/internal/run"
	"sqlwriter/test/inmem"
)

// An outage of the queues counts nothing, and needs no operator afterwards.
func TestAQueueThatIsAwayDuringTheHandOffCostsNothing(t *testing.T) {
	t.Parallel()
	for _, both := range []bool{true, false} {
		t.Run(fmt.Sprint("both queues ", both), func(t *testing.T) {
			simulate(t, func(t *testing.T, w *world) {
				w.fakeWrites(1250)
				w.crew().tick()
				w.start(run.Run{}, run.Filter{})
				w.batches.Plan(inmem.QueueFault{Accepted: 3, Err: inmem.QueueDown().Err})
				w.batches.Always(inmem.QueueDown())
				if both {
					w.runs.Always(inmem.QueueDown())
				}
				time.Sleep(time.Hour)
				require.Equal(t, run.RunRunning, w.run("run-1").Status)
				for _, batch := range w.store.AllBatches() {
					require.Zero(t, batch.QueueAttempts)
					require.NotEqual(t, run.Failed, batch.Status)
				}
				w.runs.Mend()
				w.batches.Mend()
				w.waitForEnd("run-1", 20*time.Minute)
				w.addsUp("run-1", map[invoice.Outcome]int{invoice.OutcomeApplied: 1250})
				w.nothingCounted()
				if !both {
					return
				}
				held := slices.DeleteFunc(w.ended("BatchManager"), func(c call) bool { return c.done.Did != "held" })
				require.NotEmpty(t, held, "it was held: giving it back at once is a hot loop")
				for _, c := range held {
					require.Greater(t, c.end.Sub(c.begin), 3*time.Minute)
					require.Less(t, c.end.Sub(c.begin), 4*time.Minute)
					require.True(t, fault.IsDependency(c.err))
				}
			})
		})
	}
}

// The queue accepts everything and reports failures. Each batch is delivered twice, and every document is written once.
func TestAnAmbiguousSendWritesNothingTwice(t *testing.T) {
	t.Parallel()
	for name, f := range map[string]inmem.QueueFault{
		"all stored":  inmem.QueueLosesAnswer(),
		"some stored": {Accepted: 1, Unconfirmed: 1, Err: inmem.QueueDown().Err},
	} {
		t.Run(name, func(t *testing.T) {
			simulate(t, func(t *testing.T, w *world) {
				w.fakeWrites(400)
				w.instance("m").manage()
				w.instance("a").work()
				w.instance("b").work()
				w.instance("timer").tick()
				w.batches.Plan(f)
				w.start(run.Run{}, run.Filter{})
				w.waitForEnd("run-1", 20*time.Minute)
				w.addsUp("run-1", map[invoice.Outcome]int{invoice.OutcomeApplied: 400})
				w.writtenOnce()
				w.nothingCounted()
			})
		})
	}
}

// A queue that keeps refusing is asked at intervals, while other batches continue. Only refusals of a message itself
// count.
func TestAManagerResendsAtIntervals(t *testing.T) {
	t.Parallel()
	simulate(t, func(t *testing.T, w *world) {
		w.fakeWrites(600)
		w.outstanding = 2
		w.fake.delay = time.Minute
		first := run.BatchID(sysName, "run-1", 1)
		var mu sync.Mutex
		var tries []time.Time
		w.batches.refuse = func(m run.Outgoing) error {
			if !strings.HasPrefix(m.ID, first) {
				return nil
			}
			mu.Lock()
			defer mu.Unlock()
			tries = append(tries, time.Now())
			return tooLarge()
		}
		w.crew()
		w.start(run.Run{}, run.Filter{})
		w.waitForEnd("run-1", 20*time.Minute)
		require.Equal(t, run.Failed, w.batchOf(1).Status)
		require.Equal(t, run.MaxQueueAttempts, w.batchOf(1).QueueAttempts)
		require.Len(t, tries, run.MaxQueueAttempts)
		for n := range tries[1:] {
			require.GreaterOrEqual(t, tries[n+1].Sub(tries[n]), 30*time.Second)
			require.Less(t, tries[n+1].Sub(tries[n]), time.Minute)
		}
		for _, batch := range w.store.AllBatches()[1:] {
			require.Zero(t, batch.QueueAttempts)
			require.Equal(t, run.Completed, batch.Status)
		}
		require.Equal(t, 2, w.maxOnTheWay())
		w.checkTransitions()
	})
}

// A manager that waits for room resends requeued batches at once. Their batches become queued.
func TestAManagerAtItsLimitResends(t *testing.T) {
	t.Parallel()
	simulate(t, func(t *testing.T, w *world) {
		w.fakeWrites(600)
		w.outstanding = 2
		w.instance("m").manage()
		w.start(run.Run{}, run.Filter{})
		time.Sleep(20 * time.Second)
		w.batches.Lose()
		var sent []time.Time
		for _, n := range []int{1, 2} {
			_, _, err := w.store.MarkUnsent(t.Context(), []run.Batch{w.batchOf(n)}, "lost", false, nil)
			require.NoError(t, err)
			w.until(time.Minute, "sent again", func() bool { return w.batchOf(n).Status == run.Queued })
			all := w.batches.sendings()
			sent = append(sent, all[len(all)-1].at)
			require.Equal(t, fmt.Sprint(w.batchOf(n).ID, ":1:0:0"), all[len(all)-1].id)
		}
		require.Less(t, time.Since(sent[1]), 2*time.Second)
		require.Less(t, sent[1].Sub(sent[0]), 5*time.Second)
		require.Equal(t, 2, w.maxOnTheWay())
	})
}

// tooLarge is a refusal of one message.
func tooLarge() error {
	return fault.New(fault.Document, "test: send", "too_large", "the message is too large")
}

func TestABatchFailsAfterThreeRefusedSends(t *testing.T) {
	t.Parallel()
	simulate(t, func(t *testing.T, w *world) {
		w.fakeWrites(100)
		w.onUse(func(_ context.Context, _ *instance, op string) error {
			if op == "SendBatch" {
				return tooLarge()
			}
			return nil
		})
		w.instance("m").manage()
		w.instance("timer").tick()
		w.start(run.Run{}, run.Filter{})
		for n := 1; n <= 2; n++ {
			w.until(6*time.Minute, "refused", func() bool {
				return len(w.store.AllBatches()) == 1 && w.store.AllBatches()[0].QueueAttempts == n
			})
			batch := w.store.AllBatches()[0]
			require.Equal(t, run.PendingRetry, batch.Status)
			require.Contains(t, batch.LastQueueError, "too_large")
		}
		w.waitForEnd("run-1", 12*time.Minute)
		batch := w.store.AllBatches()[0]
		require.Equal(t, run.Failed, batch.Status)
		require.Equal(t, 3, batch.QueueAttempts)
		require.Equal(t, run.MaxQueueError, batch.Error)
		require.Equal(t, []string{run.CodeBatchCreated, run.CodeBatchFail}, w.codes("run-1", batch.ID))
		require.Equal(t, run.RunCompletedWithFailures, w.run("run-1").Status, "a batch that failed has ended")
		w.checkTransitions()

		w.onUse(nil)
		w.must(w.store.RequeueBatch(t.Context(), batch.ID, audit(run.CodeBatchRequeue)))
		require.Equal(t, run.RunRunning, w.run("run-1").Status, "requeue reopens a completed run")
		w.instance("w").work()
		w.waitForEnd("run-1", 11*time.Minute)
		w.addsUp("run-1", map[invoice.Outcome]int{invoice.OutcomeApplied: 100})
	})
}
