package run_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"sqlwriter/internal/invoice"
	"sqlwriter/internal/run"
	"sqlwriter/test/inmem"
)

func audit(code string) run.Audit {
	return run.Audit{Action: code, Level: run.LevelInfo, By: "ann", Why: "a test"}
}

// addUnsentChunk kills a manager after it stored a batch and before it sent the message. The next chunk must wait.
func (w *world) addUnsentChunk(wait time.Duration) {
	w.t.Helper()
	w.start(run.Run{}, run.Filter{})
	w.runs.Lose()
	r, mine, err := w.store.ClaimRun(w.ctx, "run-1", 0, -1,
		run.Worker{ID: "manager-00000001", Instance: "gone"}, time.Hour)
	require.NoError(w.t, err)
	require.True(w.t, mine)
	lease := run.RunLease{Run: r.ID, Owner: r.Owner, Epoch: r.Epoch}
	chunk := run.Chunk{Batches: [][]string{w.fake.ids}, First: 1, Wait: wait}
	require.NoError(w.t, w.store.AddChunk(w.ctx, lease, chunk, audit(run.CodeBatchCreated)))
}

// A run whose message was lost continues, also when the next message is lost within the time of duplicate detection.
func TestARunWhoseMessageIsLostTwiceGoesOn(t *testing.T) {
	t.Parallel()
	simulate(t, func(t *testing.T, w *world) {
		w.fakeWrites(100)
		w.start(run.Run{}, run.Filter{})
		timer := w.instance("timer")
		require.Equal(t, 1, w.runs.Lose())
		for _, after := range []time.Duration{7 * time.Minute, time.Minute, time.Minute} {
			time.Sleep(after)
			done, err := timer.once()
			require.NoError(t, err)
			require.Equal(t, 1, done.Resumed)
			require.Equal(t, 1, w.runs.Lose(), "the queue took it")
		}
		time.Sleep(time.Minute)
		_, err := timer.once()
		require.NoError(t, err)
		w.instance("m").manage().work()
		w.waitForEnd("run-1", time.Minute)
		w.addsUp("run-1", map[invoice.Outcome]int{invoice.OutcomeApplied: 100})
	})
}

func TestARunThatWaitsForItsRateIsNotAbandoned(t *testing.T) {
	t.Parallel()
	simulate(t, func(t *testing.T, w *world) {
		w.fakeWrites(100)
		w.addUnsentChunk(20 * time.Minute)
		timer := w.instance("timer")
		for _, resumed := range []int{0, 1} {
			time.Sleep(19 * time.Minute)
			done, err := timer.once()
			require.NoError(t, err)
			require.Equal(t, resumed, done.Resumed)
		}
	})
}

// A refusal of one run's message, or of all, does not delay work of other runs that needs no queue.
func TestARunThatCannotContinueDelaysNoOther(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		err   error
		sends int
		done  run.RecoveredRuns
	}{
		"its own message": {tooLarge(), 2, run.RecoveredRuns{Resumed: 1, Ended: 1}},
		"the queue":       {inmem.QueueDown().Err, 1, run.RecoveredRuns{Ended: 1, QueueAway: true}},
	} {
		t.Run(name, func(t *testing.T) {
			simulate(t, func(t *testing.T, w *world) {
				w.fakeWrites(100)
				for n := range 3 {
					w.start(run.Run{ID: fmt.Sprint("run-", n+1)}, run.Filter{})
				}
				w.runs.Lose()
				w.must(w.store.CancelRun(t.Context(), "run-3", audit(run.CodeRunCancel)))
				time.Sleep(7 * time.Minute)
				sends := 0
				w.onUse(func(_ context.Context, _ *instance, op string) error {
					if op != "SendRun" {
						return nil
					}
					if sends++; sends == 1 {
						return c.err
					}
					return nil
				})
				done, err := w.instance("timer").once()
				require.ErrorIs(t, err, c.err)
				require.Equal(t, c.done, done)
				require.Equal(t, c.sends, sends)
				require.Equal(t, run.RunCancelled, w.run("run-3").Status)
			})
		})
	}
}

// lostCases are losses that the timer finds, and after how long.
func lostCases() map[string]struct {
	lose  func(w *world)
	after time.Duration
	found func(run.RecoveredRuns) int
} {
	return map[string]struct {
		lose  func(w *world)
		after time.Duration
		found func(run.RecoveredRuns) int
	}{
		"a dead worker": {func(w *world) {
			w.handedOff()
			w.claimFirst()
		}, 10 * time.Minute, func(r run.RecoveredRuns) int { return r.Rescued }},
		"a released batch": {func(w *world) {
			w.handedOff()
			w.releaseFirst()
		}, 30 * time.Minute, func(r run.RecoveredRuns) int { return r.Rescued }},
		"a batch whose message is lost": {func(w *world) {
			w.handedOff()
		}, 30 * time.Minute, func(r run.RecoveredRuns) int { return r.Silent }},
		"a run whose message is lost": {func(w *world) {
			w.start(run.Run{}, run.Filter{})
			w.runs.Lose()
		}, 7 * time.Minute, func(r run.RecoveredRuns) int { return r.Resumed }},
		"a run whose manager is dead": {func(w *world) {
			w.addUnsentChunk(0)
		}, 7 * time.Minute, func(r run.RecoveredRuns) int { return r.Resumed }},
	}
}

// Nothing counts as lost before the breaker has been closed for as long as the silence.
func TestNothingIsLostWhileTheBreakerIsOpen(t *testing.T) {
	t.Parallel()
	for name, c := range lostCases() {
		t.Run(name, func(t *testing.T) {
			simulate(t, func(t *testing.T, w *world) {
				w.fakeWrites(100)
				timer := w.instance("timer")
				tick := func() int {
					done, err := timer.once()
					require.NoError(t, err)
					return c.found(done)
				}
				c.lose(w)
				w.openBreaker(3 * time.Hour)
				time.Sleep(2 * time.Hour)
				done, err := timer.once()
				require.NoError(t, err)
				require.Equal(t, run.RecoveredRuns{Off: done.Off}, done)
				require.Contains(t, done.Off, "stopped since")
				time.Sleep(time.Hour)
				require.Zero(t, tick()) // half-open
				time.Sleep(2 * time.Minute)
				require.Zero(t, tick()) // closed
				for range c.after / time.Minute {
					require.Zero(t, tick())
					time.Sleep(time.Minute)
				}
				time.Sleep(time.Minute)
				require.Equal(t, 1, tick())
			})
		})
	}
}

// claimFirst claims the first batch for a worker that stays silent.
func (w *world) claimFirst() run.BatchLease {
	w.t.Helper()
	worker := run.Worker{ID: "worker-00000001", Instance: "gone"}
	c, err := w.store.ClaimBatch(w.ctx, w.batchOf(1).ID, run.Ticket{}, worker, time.Hour, audit(run.CodeBatchStart))
	require.NoError(w.t, err)
	require.Equal(w.t, run.Taken, c.Answer)
	return c.Lease
}

// releaseFirst releases the first batch and loses its deferred message.
func (w *world) releaseFirst() {
	w.t.Helper()
	require.NoError(w.t, w.store.ReleaseBatch(w.ctx, w.claimFirst(), audit(run.CodeBatchReleased)))
}

func TestTheTimerSendsWithinTheLimit(t *testing.T) {
	t.Parallel()
	simulate(t, func(t *testing.T, w *world) {
		w.fakeWrites(4000)
		w.outstanding = 100
		w.handedOff()
		_, _, err := w.store.MarkUnsent(t.Context(), w.store.AllBatches()[3:], "lost", false, nil)
		require.NoError(t, err)
		w.outstanding = 7
		timer := w.instance("timer")
		for _, sent := range []int{4, 0} { // three are on their way
			done, err := timer.once()
			require.NoError(t, err)
			require.Equal(t, sent, done.Sent)
		}
	})
}

// While Service Bus is away the timer itself executes the runs that no live process has: no message would bring
// anybody.
func TestTheTimerExecutesRunsWhileTheQueueIsAway(t *testing.T) {
	t.Parallel()
	for name, prepare := range map[string]func(w *world){
		"a run whose message is lost": func(w *world) { w.start(run.Run{}, run.Filter{}); w.runs.Lose() },
		"a run whose manager is dead": func(w *world) { w.addUnsentChunk(0) },
		"a batch that was not sent": func(w *world) {
			w.handedOff()
			_, _, err := w.store.MarkUnsent(w.ctx, w.store.AllBatches(), "lost", false, nil)
			require.NoError(w.t, err)
		},
	} {
		t.Run(name, func(t *testing.T) {
			simulate(t, func(t *testing.T, w *world) {
				w.fakeWrites(100)
				prepare(w)
				w.queueAway()
				timer := w.instance("timer")
				time.Sleep(8 * time.Minute)
				done, err := timer.once()
				require.Error(t, err)
				require.True(t, done.QueueAway)
				carried, err := timer.carryOn()
				require.NoError(t, err)
				require.Equal(t, run.Carried{Runs: 1, Ended: 1}, carried)
				w.addsUp("run-1", map[invoice.Outcome]int{invoice.OutcomeApplied: 100})
			})
		})
	}
}

// A live manager keeps its run while the queue is away.
func TestTheTimerLeavesTheRunOfALiveManagerAlone(t *testing.T) {
	t.Parallel()
	simulate(t, func(t *testing.T, w *world) {
		w.fakeWrites(100)
		w.start(run.Run{}, run.Filter{})
		w.queueAway()
		_, mine, err := w.store.ClaimRun(w.ctx, "run-1", 0, -1,
			run.Worker{ID: "manager-00000001", Instance: "other"}, 0)
		require.NoError(t, err)
		require.True(t, mine)
		carried, err := w.instance("timer").carryOn()
		require.NoError(t, err)
		require.Equal(t, run.Carried{}, carried)
		require.Equal(t, "manager-00000001", w.run("run-1").Owner)
	})
}

// carryOn is the end of a tick while the queue is away.
func (i *instance) carryOn() (done run.Carried, err error) {
	ended := make(chan struct{})
	i.w.group.Go(func() {
		defer close(ended)
		ctx, cancel := context.WithTimeout(i.w.ctx, 4*time.Minute)
		defer cancel()
		done, err = i.recovery.CarryOn(ctx)
	})
	<-ended
	return done, err
}
