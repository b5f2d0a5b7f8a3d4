package run_test

import (
	"context"
	"encoding/json"
	"fmt"
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

// deferred reads when the queue's messages were first deferred, by batch or run.
func deferred(t testingT, b *bus) map[string]int64 {
	t.Helper()
	found := map[string]int64{}
	for _, m := range b.Messages() {
		var p run.Payload
		require.NoError(t, json.Unmarshal(m.Body, &p))
		if p.Deferral > 0 {
			require.NotZero(t, p.FirstDeferredAt)
			found[p.RunID+p.BatchID] = p.FirstDeferredAt
		}
	}
	return found
}

// checkNothingSpent checks that an outage of SQL cost nothing.
func (w *world) checkNothingSpent(ids []string) {
	w.t.Helper()
	w.nothingCounted()
	for _, id := range ids {
		require.Zero(w.t, w.state(id).RetryCount)
	}
	for _, c := range append(w.ended("BatchWorker"), w.ended("BatchManager")...) {
		require.NoError(w.t, c.err)
	}
}

// 2 hours, 20 batches, 3 workers, a tick of the timer every 5 minutes.
func TestTwoHoursWithoutSQLCostNothing(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		// after is the age of the run when SQL fails; begun says that workers exist before.
		after time.Duration
		begun bool
	}{
		"before the hand-off":      {0, false},
		"in mid-hand-off":          {95 * time.Second, true},
		"between manager and work": {5 * time.Minute, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			simulate(t, func(t *testing.T, w *world) {
				ids := w.fill(200)
				w.instance("m").manage()
				workers := []*instance{w.instance("w1"), w.instance("w2"), w.instance("w3")}
				w.instance("timer").tick()
				if c.begun {
					for _, i := range workers {
						i.work()
					}
				}
				w.start(run.Run{Rate: 60}, run.Filter{}) // batches of 10
				w.sql(c.after > 0)
				time.Sleep(c.after)
				w.sql(false)
				gone := time.Now()
				if !c.begun {
					for _, i := range workers {
						i.work()
					}
				}
				w.outage(gone, ids)
				delay := w.waitForEnd("run-1", 20*time.Minute)
				t.Logf("after the return it took %s", delay)
				w.addsUp("run-1", map[invoice.Outcome]int{invoice.OutcomeApplied: 200})
				require.Equal(t, 20, w.run("run-1").Batches)
				w.checkNothingSpent(ids)
				for k := range ids {
					require.Equal(t, fmt.Sprint("maker ", k+1), w.maker(k+1))
				}
			})
		})
	}
}

// outage is the two hours.
func (w *world) outage(gone time.Time, ids []string) {
	t := w.t
	t.Helper()
	time.Sleep(20 * time.Minute)
	batches, runs := deferred(t, w.batches), deferred(t, w.runs)
	require.NotEmpty(t, len(batches)+len(runs))
	time.Sleep(100 * time.Minute)
	require.Equal(t, batches, deferred(t, w.batches), "the time of the first deferral is kept")
	require.Equal(t, runs, deferred(t, w.runs))
	w.checkNothingSpent(ids)
	require.Equal(t, run.RunRunning, w.run("run-1").Status)
	if len(batches) > 5 {
		require.GreaterOrEqual(t, w.askedAtMostEveryMinute(gone.Add(6*time.Minute), time.Now()), 60,
			"and it was asked, so that its return is noticed")
	} else {
		w.askedAtMostEveryMinute(gone.Add(6*time.Minute), time.Now())
	}
	w.sql(true)
}

// SQL fails during a Commit. Outcomes so far are stored, and the rest is done later.
func TestAnOutageInMidBatchLeavesTheRest(t *testing.T) {
	t.Parallel()
	simulate(t, func(t *testing.T, w *world) {
		w.fill(100)
		w.instance("m").manage()
		w.instance("w").work()
		w.instance("timer").tick()
		writes := 0
		w.onUse(func(_ context.Context, _ *instance, op string) error {
			if op == "Apply" {
				if writes++; writes == 1 {
					defer w.sql(false) // the first is still answered
				}
			}
			return nil
		})
		w.start(run.Run{}, run.Filter{})
		time.Sleep(30 * time.Minute)
		w.sql(true)
		w.waitForEnd("run-1", 15*time.Minute)
		outcomes := w.stats("run-1").Outcomes
		require.Equal(t, 100, outcomes[invoice.OutcomeApplied]+outcomes[invoice.OutcomeSkipped])
		w.checkTransitions()
		w.nothingCounted()
	})
}

func TestAnOperatorsPauseCostsNothing(t *testing.T) {
	t.Parallel()
	simulate(t, func(t *testing.T, w *world) {
		ids := w.fill(100)
		m := w.instance("m").manage()
		w.instance("w").work()
		w.instance("timer").tick()
		w.start(run.Run{Rate: 60}, run.Filter{})
		time.Sleep(35 * time.Second)
		require.NoError(t, m.breaker.Pause(t.Context(), "ann", "maintenance"))
		time.Sleep(6 * time.Second)
		asked := w.asks()
		time.Sleep(2 * time.Hour)
		require.Equal(t, asked, w.asks(), "SQL is not asked")
		require.Equal(t, run.RunRunning, w.run("run-1").Status)
		w.checkNothingSpent(ids)
		require.NoError(t, m.breaker.Resume(t.Context(), "ann", "done"))
		w.waitForEnd("run-1", 15*time.Minute)
		w.addsUp("run-1", map[invoice.Outcome]int{invoice.OutcomeApplied: 100})
		w.checkNothingSpent(ids)
	})
}

// SQL and the queue are away. The message is held to the end of the invocation, and only then abandoned.
func TestAMessageThatCannotBeDeferredIsHeld(t *testing.T) {
	t.Parallel()
	simulate(t, func(t *testing.T, w *world) {
		w.fakeWrites(100)
		w.instance("m").manage()
		w.start(run.Run{}, run.Filter{})
		w.until(time.Minute, "handed off", func() bool { return !w.run("run-1").HandedOffAt.IsZero() })
		w.sql(false)
		w.batches.Always(inmem.QueueDown())
		before := w.batches.Sends()
		w.instance("w").work()
		time.Sleep(19 * time.Minute)
		calls := w.ended("BatchWorker")
		require.Len(t, calls, 4)
		for _, c := range calls {
			require.InDelta(t, (4*time.Minute - 10*time.Second).Seconds(), c.end.Sub(c.begin).Seconds(), 5)
			require.Equal(t, "held", c.done.Did)
			require.True(t, fault.IsDependency(c.err))
		}
		require.LessOrEqual(t, w.batches.Sends()-before, 4*20, "no hot loop: every 15 seconds")
		require.GreaterOrEqual(t, w.batches.Sends()-before, 3*19)
		require.LessOrEqual(t, w.batches.MostDeliveries(), 5)
		w.batches.Mend() // well before ten deliveries: 38 minutes
		w.sql(true)
		w.waitForEnd("run-1", 10*time.Minute)
		w.addsUp("run-1", map[invoice.Outcome]int{invoice.OutcomeApplied: 100})
	})
}

// An invocation whose time ends during the work still defers its message.
func TestABatchThatOutlivesItsInvocationIsNotCounted(t *testing.T) {
	t.Parallel()
	simulate(t, func(t *testing.T, w *world) {
		w.fakeWrites(100)
		slow := 12
		w.fake.during = func(ctx context.Context, _ *instance) error {
			if slow--; slow < 0 {
				return nil
			}
			<-ctx.Done()
			return fault.Wrap(fault.Infrastructure, "test: commit", "timeout", "the time is over", ctx.Err())
		}
		w.instance("m").manage()
		w.instance("w").work()
		w.start(run.Run{}, run.Filter{})
		w.waitForEnd("run-1", 2*time.Hour)
		w.addsUp("run-1", map[invoice.Outcome]int{invoice.OutcomeApplied: 100})
		require.Equal(t, 12, w.did("BatchWorker")["deferred"])
		require.Equal(t, 1, w.batches.MostDeliveries())
	})
}

// An outage interrupts every worker in mid-batch. None counts as lost until the breaker has been closed for ten
// minutes.
func TestTimeWithTheBreakerOpenNeverCountsAsStuck(t *testing.T) {
	t.Parallel()
	simulate(t, func(t *testing.T, w *world) {
		w.fakeWrites(300)
		w.instance("m").manage()
		var caught sync.WaitGroup
		caught.Add(3)
		w.fake.during = func(context.Context, *instance) error {
			caught.Done()
			caught.Wait()
			w.sql(false) // every worker is caught in mid-work
			return nil
		}
		workers := w.instance("w").work().work().work()
		timer := w.instance("timer")
		w.start(run.Run{}, run.Filter{})
		w.until(time.Minute, "all caught", func() bool { return w.stats("run-1").Batches[run.Processing] == 3 })
		w.until(15*time.Minute, "the breaker is open", func() bool { _, _ = timer.once(); return workers.isOpen() })
		w.batches.Always(inmem.QueueDown()) // no message is abandoned either
		time.Sleep(3 * time.Hour)
		done, err := timer.once()
		require.NoError(t, err)
		require.Contains(t, done.Off, "stopped since")

		w.fake.mu.Lock()
		w.fake.during = nil
		w.fake.mu.Unlock()
		w.batches.Lose()
		w.sql(true)
		require.NoError(t, workers.breaker.Resume(t.Context(), "ann", "it is back"))
		time.Sleep(2 * time.Minute)
		_, err = timer.once() // it closes
		require.NoError(t, err)
		for range 10 {
			time.Sleep(59 * time.Second)
			done, err := timer.once()
			require.NoError(t, err)
			require.Zero(t, done.Rescued+done.Workers+done.Silent+done.Resumed, "%+v", done)
			require.Equal(t, 3, w.stats("run-1").Batches[run.Processing])
		}
		w.batches.Mend()
		time.Sleep(31 * time.Second) // ten minutes of silence with the breaker closed
		done, err = timer.once()
		require.NoError(t, err)
		require.Equal(t, 3, done.Rescued)
		require.Equal(t, 3, done.Sent)
		w.waitForEnd("run-1", time.Minute)
		outcomes := w.stats("run-1").Outcomes
		require.Equal(t, 300, outcomes[invoice.OutcomeApplied]+outcomes[invoice.OutcomeUnchanged])
		var codes []string
		for _, a := range w.store.Audits() {
			if a.Action == run.CodeBatchRecovered {
				codes = append(codes, string(a.Detail))
			}
		}
		require.Len(t, codes, 1)
		require.Contains(t, strings.Join(codes, ""), `"dead":3`)
	})
}
