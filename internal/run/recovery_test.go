package run_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"sqlwriter/internal/run"
)

// A run whose message was lost is gone on with, also when that message is lost within the queue's memory of ids.
func TestARunWhoseMessageIsLostTwiceGoesOn(t *testing.T) {
	t.Parallel()
	simulate(t, func(t *testing.T, w *world) {
		w.lighten(100)
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
		w.over("run-1", time.Minute)
		w.addsUp("run-1", map[run.Outcome]int{run.DocCommitted: 100})
	})
}

// A manager that could say nothing while the gate was open is not gone.
func TestARunIsNotTakenForAbandonedAfterAnOutage(t *testing.T) {
	t.Parallel()
	simulate(t, func(t *testing.T, w *world) {
		w.fill(30)
		m := w.instance("m").manage()
		timer := w.instance("timer")
		w.start(run.Run{Rate: 30}, run.Filter{})
		time.Sleep(25 * time.Second)
		w.sql(false)
		_, _ = timer.once()
		time.Sleep(2 * time.Hour)
		require.True(t, m.gate.View(t.Context()).State().Open())
		w.runs.Lose() // the message that was put off, so that only the timer could go on
		w.sql(true)
		require.NoError(t, m.gate.Resume(t.Context(), "ann"))
		time.Sleep(6 * time.Second)
		done, err := timer.once()
		require.NoError(t, err)
		require.Empty(t, done.Off)
		require.Zero(t, done.Resumed)
		time.Sleep(7 * time.Minute)
		done, err = timer.once()
		require.NoError(t, err)
		require.Equal(t, 1, done.Resumed)
		w.instance("w").work()
		w.over("run-1", 5*time.Minute)
		w.addsUp("run-1", map[run.Outcome]int{run.DocCommitted: 30})
	})
}
