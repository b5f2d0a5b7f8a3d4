package run_test

import (
	"context"
	"encoding/json"
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
		w.crew()
		w.start(run.Run{}, run.Filter{})
		w.waitForEnd("run-1", 2*time.Hour)
		w.addsUp("run-1", map[invoice.Outcome]int{invoice.OutcomeApplied: 100})
		require.Equal(t, 12, w.did("BatchWorker")["deferred"])
		require.Equal(t, 1, w.batches.MostDeliveries())
	})
}
