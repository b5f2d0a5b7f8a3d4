package run_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"sqlwriter/internal/commit"
	"sqlwriter/internal/invoice"
	"sqlwriter/internal/run"
)

// A replay of another run takes its failed documents and those that wait before they are due, of one code if given.
func TestAReplayTakesWhatARunLeft(t *testing.T) {
	t.Parallel()
	simulate(t, func(t *testing.T, w *world) {
		ids := w.fakeWrites(250)
		w.fake.results = map[string]commit.DocumentResult{}
		for k, id := range ids {
			switch {
			case k%50 == 0:
				w.fake.results[id] = commit.DocumentResult{Outcome: invoice.OutcomeFailed, Code: "547"}
			case k%25 == 0:
				w.fake.results[id] = commit.DocumentResult{Outcome: invoice.OutcomeRetryScheduled, Code: "2628"}
			}
		}
		w.chunkSize = 3
		w.crew()
		w.start(run.Run{}, run.Filter{})
		w.waitForEnd("run-1", time.Minute)
		require.Equal(t, run.RunCompletedWithFailures, w.run("run-1").Status)
		reported := w.fake.results
		w.fake.mu.Lock()
		w.fake.results = nil
		w.fake.mu.Unlock()

		w.start(run.Run{ID: "run-2", Kind: run.Replay}, run.Filter{Run: "run-1"})
		w.waitForEnd("run-2", time.Minute)
		w.addsUp("run-2", map[invoice.Outcome]int{invoice.OutcomeUnchanged: 10})
		items, err := w.store.Items(t.Context(), "run-2", nil, "", 100)
		require.NoError(t, err)
		for _, it := range items {
			require.Contains(t, reported, it.Document)
		}
		require.Positive(t, w.run("run-2").Named, "those that wait for a retry are taken, too")
	})
}

// Retention may begin to delete a run at the moment in which a replay of it starts.
func TestAReplayOfADeletedRunFails(t *testing.T) {
	t.Parallel()
	for _, limit := range []int{1, 1000} { // the run is there, without its worker; nothing is there
		simulate(t, func(t *testing.T, w *world) {
			r := w.startHere(run.Run{}, run.Filter{})
			row, ok, err := w.store.ClaimRun(t.Context(), r.ID, 0, -1, run.Worker{ID: "manager"}, time.Minute)
			require.NoError(t, err)
			require.True(t, ok)
			require.NoError(t,
				w.store.ReleaseRun(t.Context(), run.RunLease{Run: r.ID, Owner: "manager", Epoch: row.Epoch}))
			w.must(w.store.FailRun(t.Context(), r.ID, "x", 0,
				run.Audit{Action: run.CodeRunFail, Level: run.LevelError, By: "ann", Why: "a test"}))
			w.hook = func(_ context.Context, _ *instance, op string) error {
				if op == "Items" { // a status that was read before them is old
					w.store.PurgeRun(r.ID, limit)
				}
				return nil
			}

			w.instance("m").manage()
			w.start(run.Run{ID: "run-2", Kind: run.Replay}, run.Filter{Run: r.ID})
			w.waitForEnd("run-2", time.Minute)
			require.Equal(t, run.RunFailed, w.run("run-2").Status)
			require.Contains(t, w.run("run-2").Error, "was deleted by retention")
		})
	}
}
