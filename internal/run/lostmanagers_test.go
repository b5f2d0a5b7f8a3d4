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

// restartManagers starts a manager's process, and another one whenever it has died.
func (w *world) restartManagers() {
	w.group.Go(func() {
		for n := 1; w.ctx.Err() == nil; n++ {
			i := w.instance(fmt.Sprint("m", n)).manage()
			for !i.isDead() && w.ctx.Err() == nil {
				w.pause(10 * time.Second)
			}
		}
	})
}

// A run that kills its manager's process cannot record that, and the timer would continue it for ever. Each claim
// outdates the earlier messages, so none of them is delivered ten times.
func TestARunThatKillsItsManagersFails(t *testing.T) {
	t.Parallel()
	simulate(t, func(t *testing.T, w *world) {
		w.fakeWrites(100)
		var died atomic.Int32
		w.onUse(func(_ context.Context, i *instance, op string) error {
			if op == "Page" {
				i.killAfter(0)
				died.Add(1)
			}
			return nil
		})
		w.restartManagers()
		w.instance("timer").tick()
		w.instance("letters").deadLetters()
		w.start(run.Run{}, run.Filter{})
		w.until(time.Hour, "two are lost", func() bool { return w.run("run-1").LostManagers == 2 })
		w.waitForEnd("run-1", 2*time.Hour)
		r := w.run("run-1")
		require.Equal(t, run.RunFailed, r.Status)
		require.Equal(t, 10, r.LostManagers)
		require.EqualValues(t, 10, died.Load(), "the one that gives it up does not try it")
		require.Contains(t, r.Error, "10 managers in a row were lost")
		require.Contains(t, r.Error, "`run resume`", "what to do")
		require.Contains(t, r.Error, "--limit", "or else")
		require.Equal(t, []string{run.CodeRunStart, run.CodeRunFail}, w.codes("run-1", ""))
		audits := w.store.Audits()
		last := audits[len(audits)-1]
		require.Equal(t, []string{run.LevelError, r.Error}, []string{last.Level, last.Why})
		reported := 0
		for _, c := range w.ended("BatchManager") {
			if fault.CodeOf(c.err) == "lost_managers" {
				reported++
			}
		}
		require.Equal(t, 1, reported, "the host learns of it")
		time.Sleep(30 * time.Minute)
		require.EqualValues(t, 10, died.Load(), "no manager continues it")
		require.Empty(t, w.evidence.Files(), "no message is a dead letter")

		w.onUse(nil)
		w.must(w.store.ResumeRun(t.Context(), "run-1", audit(run.CodeRunResume)))
		w.notify("run-1")
		w.instance("w").work()
		w.waitForEnd("run-1", 10*time.Minute)
		w.addsUp("run-1", map[invoice.Outcome]int{invoice.OutcomeApplied: 100})
	})
}

// loseManager kills a run's manager and loses its message.
func (w *world) loseManager(id string) {
	_, taken := w.runs.Take()
	require.True(w.t, taken)
	_, mine, err := w.store.ClaimRun(w.ctx, id, w.run(id).Epoch, -1,
		run.Worker{ID: "manager-00000001", Instance: "gone"}, time.Hour)
	require.NoError(w.t, err)
	require.True(w.t, mine)
}

// A live manager that could not release the run during an outage defers its message. It never counts as lost.
func TestAManagerThatCouldNotReleaseIsNotLost(t *testing.T) {
	t.Parallel()
	simulate(t, func(t *testing.T, w *world) {
		w.fakeWrites(3000)
		w.outstanding = 5
		w.start(run.Run{}, run.Filter{})
		w.loseManager("run-1")
		w.instance("m").manage()
		w.instance("timer").tick()
		w.until(20*time.Minute, "the timer's message brings a manager", func() bool {
			return w.run("run-1").Documents > 0
		})
		time.Sleep(2 * time.Minute)
		var most atomic.Int32
		w.onUse(func(context.Context, *instance, string) error {
			most.Store(max(most.Load(), int32(w.run("run-1").LostManagers)))
			return nil
		})
		claims := w.run("run-1").Epoch
		for range 12 {
			w.sql(false)
			time.Sleep(90 * time.Second)
			require.NotEmpty(t, w.run("run-1").Owner, "the release failed")
			w.sql(true)
			time.Sleep(18 * time.Minute)
		}
		require.Greater(t, w.run("run-1").Epoch, claims+12, "it was claimed again each time")
		require.Zero(t, most.Load())
		require.Equal(t, run.RunRunning, w.run("run-1").Status)
		w.instance("w").work()
		w.waitForEnd("run-1", 2*time.Hour)
		w.addsUp("run-1", map[invoice.Outcome]int{invoice.OutcomeApplied: 3000})
	})
}
