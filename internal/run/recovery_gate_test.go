package run_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"sqlwriter/internal/fault"
	"sqlwriter/internal/inmem"
	"sqlwriter/internal/run"
)

func audit(code string) run.Audit {
	return run.Audit{Code: code, Level: run.LevelInfo, By: "ann", Why: "a test"}
}

// taken has a worker that says nothing any more have the first batch.
func (w *world) taken() run.Hold {
	w.t.Helper()
	c, err := w.store.ClaimJob(w.ctx, w.job(1).ID, run.Worker{ID: "worker-00000001", Instance: "gone"}, time.Hour, audit(run.CodeBatchStart))
	require.NoError(w.t, err)
	require.Equal(w.t, run.Taken, c.Answer)
	return c.Hold
}

// letGo has a worker let go of the first batch, and the message be lost that it put off.
func (w *world) letGo() {
	w.t.Helper()
	require.NoError(w.t, w.store.ReleaseJob(w.ctx, w.taken(), audit(run.CodeBatchReleased)))
}

// chunked has a manager die between the rows of a batch and its message: nothing is sent, and the next chunk is to wait.
func (w *world) chunked(wait time.Duration) {
	w.t.Helper()
	w.start(run.Run{}, run.Filter{})
	w.runs.Lose()
	r, mine, err := w.store.ClaimRun(w.ctx, "run-1", 0, run.Worker{ID: "manager-00000001", Instance: "gone"}, time.Hour, true)
	require.NoError(w.t, err)
	require.True(w.t, mine)
	lease := run.Lease{Run: r.ID, Owner: r.Owner, Epoch: r.Epoch}
	chunk := run.Chunk{Batches: [][]string{w.light.ids}, First: 1, Initial: run.PendingQueue, Wait: wait}
	require.NoError(w.t, w.store.AddChunk(w.ctx, lease, chunk, audit(run.CodeBatchCreated)))
}

// pause opens the gate for a while.
func (i *instance) pause(d time.Duration) {
	i.w.t.Helper()
	require.NoError(i.w.t, i.gate.Pause(i.w.ctx, "ann", "maintenance"))
	time.Sleep(d)
	require.NoError(i.w.t, i.gate.Resume(i.w.ctx, "ann"))
}

// throttled has the database ask for less again and again.
func (w *world) throttled(every time.Duration) {
	busy := w.instance("busy")
	w.group.Go(func() {
		for w.ctx.Err() == nil {
			w.pause(every - 15*time.Second)
			_ = busy.gate.Guard(w.ctx, true, func(context.Context) error {
				return fault.New(fault.Throttled, "test: sql", "40501", "the service is busy")
			})
			w.pause(11 * time.Second)
			for range 10 { // a probe, and the ramp
				_ = busy.gate.Guard(w.ctx, true, func(context.Context) error { return nil })
				w.pause(400 * time.Millisecond)
			}
		}
	})
}

// A gate that opens for ten seconds every few minutes hides nobody for ever.
func TestShortOpeningsOfTheGateHideNobody(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		lost  func(w *world)
		every time.Duration
	}{
		"a dead worker":                 {func(w *world) { w.handedOff(); w.taken() }, 9 * time.Minute},
		"a batch that was let go of":    {func(w *world) { w.handedOff(); w.letGo() }, 9 * time.Minute},
		"a batch whose message is lost": {func(w *world) { w.handedOff() }, 9 * time.Minute},
		"a batch that was never sent":   {func(w *world) { w.chunked(0) }, 9 * time.Minute},
		"a run whose message is lost":   {func(w *world) { w.start(run.Run{}, run.Filter{}); w.runs.Lose() }, 4 * time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			simulate(t, func(t *testing.T, w *world) {
				w.lighten(100)
				w.throttled(c.every)
				timer := w.instance("timer").tick()
				w.until(10*time.Minute, "the gate was open", func() bool { return timer.gate.View(w.ctx).State().Open() })
				w.until(time.Minute, "and closed", func() bool { return !timer.gate.View(w.ctx).State().Open() })
				c.lost(w)
				w.instance("m").manage().work()
				w.over("run-1", time.Hour)
				w.addsUp("run-1", map[run.Outcome]int{run.DocCommitted: 100})
			})
		})
	}
}

// lostThings are what a timer finds, and when: no sooner than when the gate has been closed for so long.
func lostThings() map[string]struct {
	lose  func(w *world)
	after time.Duration
	found func(run.Recovered) int
} {
	return map[string]struct {
		lose  func(w *world)
		after time.Duration
		found func(run.Recovered) int
	}{
		"a dead worker":                 {func(w *world) { w.handedOff(); w.taken() }, 10 * time.Minute, func(r run.Recovered) int { return r.Buried }},
		"a batch that was let go of":    {func(w *world) { w.handedOff(); w.letGo() }, 30 * time.Minute, func(r run.Recovered) int { return r.Buried }},
		"a batch whose message is lost": {func(w *world) { w.handedOff() }, 30 * time.Minute, func(r run.Recovered) int { return r.Silent }},
		"a batch that was never sent":   {func(w *world) { w.chunked(0) }, 10 * time.Minute, func(r run.Recovered) int { return r.Sent }},
		"a run whose message is lost":   {func(w *world) { w.start(run.Run{}, run.Filter{}); w.runs.Lose() }, 6 * time.Minute, func(r run.Recovered) int { return r.Resumed }},
		"a run whose manager is dead":   {func(w *world) { w.chunked(0) }, 7 * time.Minute, func(r run.Recovered) int { return r.Resumed }},
	}
}

// Whoever can say nothing while the gate is open is not lost, whatever the timer saw before: each threshold begins with the
// return, or goes on where it was.
func TestNothingIsLostForThreeHoursWithTheGateOpen(t *testing.T) {
	t.Parallel()
	for name, c := range lostThings() {
		for _, before := range []string{"ticks before", "no tick before", "another process after"} {
			t.Run(name+", "+before, func(t *testing.T) {
				simulate(t, func(t *testing.T, w *world) {
					w.lighten(100)
					timer := w.instance("timer")
					tick := func() int {
						done, err := timer.once()
						require.NoError(t, err)
						return c.found(done)
					}
					if before != "no tick before" {
						tick()
					}
					c.lose(w)
					timer.pause(3 * time.Hour)
					if before == "another process after" {
						timer = w.instance("another")
					}
					for range int(c.after/time.Minute) - 1 {
						time.Sleep(time.Minute)
						require.Zero(t, tick(), "after %s", time.Since(w.run("run-1").StartedAt))
					}
					time.Sleep(50 * time.Second)
					require.Zero(t, tick())
					time.Sleep(11 * time.Second)
					require.Equal(t, 1, tick())
				})
			})
		}
	}
}

// What was silent before an outage goes on being so after it: the time before counts.
func TestSilenceBeforeAnOutageCounts(t *testing.T) {
	t.Parallel()
	simulate(t, func(t *testing.T, w *world) {
		w.lighten(100)
		w.handedOff()
		w.taken()
		timer := w.instance("timer")
		time.Sleep(9 * time.Minute)
		_, err := timer.once()
		require.NoError(t, err)
		timer.pause(3 * time.Hour)
		for _, buried := range []int{0, 1} {
			time.Sleep(40 * time.Second)
			done, err := timer.once()
			require.NoError(t, err)
			require.Equal(t, buried, done.Buried)
		}
	})
}

// A run that waits for its rate is not abandoned, however little its manager says.
func TestARunThatWaitsForItsRateIsNotAbandoned(t *testing.T) {
	t.Parallel()
	simulate(t, func(t *testing.T, w *world) {
		w.lighten(100)
		w.chunked(20 * time.Minute)
		timer := w.instance("timer")
		for _, resumed := range []int{0, 1} {
			time.Sleep(19 * time.Minute)
			done, err := timer.once()
			require.NoError(t, err)
			require.Equal(t, resumed, done.Resumed)
		}
	})
}

// Where no document and no message comes, nobody but the timer asks whether SQL is back.
func TestTheTimerProbesAGateThatNobodyElseLooksAt(t *testing.T) {
	t.Parallel()
	simulate(t, func(t *testing.T, w *world) {
		timer := w.instance("timer")
		w.sql(false)
		w.until(time.Hour, "the gate is open", func() bool {
			_, _ = timer.once()
			return timer.gate.Seen().State().Open()
		})
		w.sql(true)
		time.Sleep(5 * time.Minute)
		done, err := timer.once()
		require.NoError(t, err)
		require.Empty(t, done.Off)
		require.False(t, timer.gate.Seen().State().Open())
	})
}

// What the queue has against one run's message, or against all, keeps the runs behind it from nothing that needs no queue.
func TestARunThatCannotBeGoneOnWithKeepsNoneBehindIt(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		err   error
		sends int
		done  run.Recovered
	}{
		"its own message": {tooLarge(), 2, run.Recovered{Resumed: 1, Ended: 1}},
		"the queue":       {inmem.QueueDown().Err, 1, run.Recovered{Ended: 1}},
	} {
		t.Run(name, func(t *testing.T) {
			simulate(t, func(t *testing.T, w *world) {
				w.lighten(100)
				for n := range 3 {
					w.start(run.Run{ID: fmt.Sprint("run-", n+1)}, run.Filter{})
				}
				w.runs.Lose()
				ok, err := w.store.CancelRun(t.Context(), "run-3", audit(run.CodeRunCancel))
				require.NoError(t, err)
				require.True(t, ok)
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
