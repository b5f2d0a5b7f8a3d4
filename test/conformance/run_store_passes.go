package conformance

import (
	"time"

	"github.com/stretchr/testify/require"

	"sqlwriter/internal/run"
)

func runPass(r *runTest) {
	r.start("r")
	r.leaseRun("r")
	r.Age(r, runStale)
	l := r.leaseRun("r") // the first is lost
	require.Equal(r, 1, r.read("r").LostManagers)
	r.Age(r, runAlmost)
	require.NoError(r, r.Store.SavePass(r.Context(), l, run.Progress{
		Watermark: `{"pass":"1"}`, Counts: map[string]int{"committed": 3, "failed": 1}, Documents: 4, Wait: 5 * time.Minute,
	}))
	found := r.read("r")
	r.recent(found.HeartbeatAt, "a step is a heartbeat")
	require.Equal(r, []any{`{"pass":"1"}`, 4, 0, 0}, []any{found.Watermark, found.Documents, found.Batches, found.LostManagers})
	require.Equal(r, map[string]int{"committed": 3, "failed": 1}, found.Counts)
	require.InDelta(r, 5*time.Minute, found.NextIn, float64(time.Minute))
	require.Zero(r, found.Idle, "it waits as it was told")
	stats, err := r.Store.Stats(r.Context(), "r")
	require.NoError(r, err)
	require.Equal(r, map[run.Outcome]int{run.DocCommitted: 3, run.DocFailed: 1}, stats.Outcomes)

	require.NoError(r, r.Store.SavePass(r.Context(), l, run.Progress{Watermark: "2", Counts: map[string]int{"committed": 5}, Documents: 5}))
	found = r.read("r")
	require.Equal(r, []any{"2", 5}, []any{found.Watermark, found.Documents})
	require.Equal(r, map[string]int{"committed": 5}, found.Counts)
	require.LessOrEqual(r, found.NextIn, time.Duration(0), "the next one need not wait")
	require.Less(r, found.Idle, time.Minute)
}

func runLatePass(r *runTest) {
	r.start("r")
	l := r.leaseRun("r")
	late := run.Progress{Watermark: "late", Counts: map[string]int{"failed": 9}, Documents: 9, Wait: time.Hour}
	for name, other := range map[string]run.RunLease{
		"another epoch":   {Run: "r", Owner: l.Owner, Epoch: l.Epoch - 1},
		"another manager": {Run: "r", Owner: "manager-0", Epoch: l.Epoch},
		"no manager":      {Run: "r", Epoch: l.Epoch},
		"another run":     {Run: "s", Owner: l.Owner, Epoch: l.Epoch},
	} {
		r.changesNothing(name, func() { r.lost(r.Store.SavePass(r.Context(), other, late), name) })
	}
	r.must(r.Store.CancelRun(r.Context(), "r", entry("RUN_CANCEL")))
	r.changesNothing("it is to end", func() { r.lost(r.Store.SavePass(r.Context(), l, late)) })
}

func runPassesEnd(r *runTest) {
	for id, c := range map[string]struct {
		counts map[string]int
		want   run.RunStatus
	}{
		"good":    {map[string]int{"committed": 2}, run.RunCompleted},
		"nothing": {map[string]int{}, run.RunCompleted},
		"bad":     {map[string]int{"committed": 2, "failed": 1}, run.RunCompletedWithFailures},
	} {
		r.start(id)
		l := r.leaseRun(id)
		require.NoError(r, r.Store.SavePass(r.Context(), l, run.Progress{Watermark: "w", Counts: c.counts, Documents: len(c.counts)}))
		require.NoError(r, r.Store.EndHandOff(r.Context(), l, entry("HANDED_OFF")))
		r.changesNothing("it is handed off", func() { r.lost(r.Store.SavePass(r.Context(), l, run.Progress{Watermark: "late"})) })
		ok, status, stats := r.complete(id)
		require.True(r, ok)
		require.Equal(r, []any{c.want, c.want}, []any{status, r.read(id).Status}, id)
		require.Equal(r, c.counts["failed"], stats.Outcomes[run.DocFailed])
		require.Equal(r, c.counts, r.read(id).Counts, "its end leaves them")
	}
}
