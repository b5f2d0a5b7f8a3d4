package run_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"sqlwriter/internal/run"
	"sqlwriter/test/inmem"
)

// queueAway takes the queues away for the rest of the test.
func (w *world) queueAway() {
	w.batches.Always(inmem.QueueDown())
	w.runs.Always(inmem.QueueDown())
}

func TestTheExecutorNeedsNoQueue(t *testing.T) {
	t.Parallel()
	simulate(t, func(t *testing.T, w *world) {
		w.queueAway()
		w.fill(250)
		w.startHere(run.Run{}, run.Filter{})
		done, err := w.instance("x").executor.Execute(t.Context(), "run-1")
		require.NoError(t, err)
		require.Equal(t, run.Executed{}, done)
		w.addsUp("run-1", map[run.Outcome]int{run.DocCommitted: 250})
		require.Equal(t, []string{run.CodeRunStart, run.CodeRunHandedOff, run.CodeRunDone}, w.codes("run-1", ""))
		for n := range 3 {
			require.Equal(t, []string{run.CodeBatchCreated, run.CodeBatchStart, run.CodeBatchDone}, w.codes("run-1", run.BatchID(sysName, "run-1", n+1)))
		}
	})
}

func TestTheExecutorKeepsTheRate(t *testing.T) {
	t.Parallel()
	simulate(t, func(t *testing.T, w *world) {
		w.fakeWrites(600)
		w.startHere(run.Run{Rate: 60}, run.Filter{})
		begin := time.Now()
		_, err := w.instance("x").executor.Execute(context.Background(), "run-1")
		require.NoError(t, err)
		w.addsUp("run-1", map[run.Outcome]int{run.DocCommitted: 600})
		require.InDelta(t, 10*time.Minute, time.Since(begin), float64(15*time.Second))
	})
}
