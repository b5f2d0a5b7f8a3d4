package ops_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"sqlwriter/internal/fault"
	"sqlwriter/internal/ops"
	"sqlwriter/internal/run"
)

// The timer's day is the deployment's: two ticks of one day start one run, also around midnight in UTC.
func TestTheNightlyRunIsStartedOnceADay(t *testing.T) {
	r := newRuns(t)
	r.clock = time.Date(2025, 12, 18, 23, 30, 0, 0, time.UTC)
	n, err := r.ops.StartNightly(t.Context())
	require.NoError(t, err)
	require.Equal(t, ops.Nightly{Run: "reconcile-2025-12-18-web", Did: "started"}, n)
	row, there, err := r.store.Run(t.Context(), n.Run)
	require.NoError(t, err)
	require.True(t, there)
	var filter run.Filter
	require.NoError(t, json.Unmarshal(row.Filter, &filter))
	require.True(t, filter.Mend, "the timer's run mends")
	require.Equal(t, []any{run.Reconcile, run.InPasses, "Reconcile", 60_000, run.RunRunning}, []any{row.Kind, row.Pattern, row.RequestedBy, row.Rate, row.Status})
	require.Equal(t, run.CodeRunStart, r.runStore.Audits()[0].Code)

	r.clock = r.clock.Add(2 * time.Hour) // the next day in UTC, the same in Chicago
	n, err = r.ops.StartNightly(t.Context())
	require.NoError(t, err)
	require.Equal(t, ops.Nightly{Run: "reconcile-2025-12-18-web", Did: "was started before"}, n)
	require.Len(t, r.runStore.Audits(), 1)
	require.Zero(t, r.queue.Sends(), "the recovery timer executes it")

	r.clock = r.clock.Add(24 * time.Hour)
	n, err = r.ops.StartNightly(t.Context())
	require.NoError(t, err)
	require.Equal(t, ops.Nightly{Run: "reconcile-2025-12-18-web", Did: "still runs"}, n)
	_, there, err = r.store.Run(t.Context(), "reconcile-2025-12-19-web")
	require.NoError(t, err)
	require.False(t, there, "it would only wait for the first")

	failed, err := r.store.FailRun(t.Context(), n.Run, "no blobs", time.Minute, run.Audit{})
	require.NoError(t, err)
	require.True(t, failed)
	n, err = r.ops.StartNightly(t.Context())
	require.NoError(t, err)
	require.Equal(t, ops.Nightly{Run: "reconcile-2025-12-19-web", Did: "started"}, n)
}

// Two instances may tick at the same time, and the other one may be faster between the look and the start.
func TestANightlyRunThatAnotherInstanceStartedIsFound(t *testing.T) {
	r := newRuns(t)
	r.runStore.fails = fault.New(fault.Internal, "test: start", "run_exists", "it is there")
	n, err := r.ops.StartNightly(t.Context())
	require.NoError(t, err)
	require.Equal(t, "was started before", n.Did)
	r.runStore.fails = fault.New(fault.Infrastructure, "test: start", "refused", "no")
	_, err = r.ops.StartNightly(t.Context())
	require.True(t, fault.IsDependency(err), "the tick fails")
}

func TestAShadowComparesNothing(t *testing.T) {
	r := newRuns(t)
	r.readOnly = "MODE=shadow: nothing is written"
	r.renew()
	n, err := r.ops.StartNightly(t.Context())
	require.NoError(t, err)
	require.Equal(t, ops.Nightly{Off: r.readOnly}, n)
	require.Empty(t, r.runStore.Audits())
}

// The id leaves room for the ends of the runs that mend, whatever the environment's name.
func TestTheIDOfTheNightlyRunFitsALongName(t *testing.T) {
	for _, name := range []string{"web", strings.Repeat("w", 32), strings.Repeat("w", 33), strings.Repeat("w", 63)} {
		id := ops.NightlyID(run.Reconcile, name, start())
		require.LessOrEqual(t, len(id+"-rewrite"), ops.MaxRunID, id)
		require.Equal(t, len(name) <= 32, strings.HasSuffix(id, name), id)
	}
}
