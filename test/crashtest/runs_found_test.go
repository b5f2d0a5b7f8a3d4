package crashtest

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"sqlwriter/internal/fault"
	"sqlwriter/internal/invoice"
	"sqlwriter/internal/run"
)

// Histories that found a fault in runs, without the luck.

// TestARunIsFoundBehindAnOpenBreakerWithoutTraffic: an outage, and when it is over nobody uses SQL: a replay was asked
// for, its message was lost, and no document waits. The timer's own pass is then the probe, whatever opened the
// breaker.
func TestARunIsFoundBehindAnOpenBreakerWithoutTraffic(t *testing.T) {
	for _, kind := range []fault.Kind{fault.Infrastructure, fault.Throttled, fault.Quota} {
		t.Run(string(kind), func(t *testing.T) { foundBehind(t, kind) })
	}
}

func foundBehind(t *testing.T, kind fault.Kind) {
	t.Helper()
	p := runPath("silent breaker",
		&runsPath{batch: 2, chunk: 2, page: 2, want: map[string]map[string]invoice.Outcome{theRun: {}}},
		linesOf(791, 2), func(w *world) {
			failed := `"status":"failed","retry_count":5,"failed_at":"2025-12-18 08:00:00.000000-06:00","error":"x"`
			w.advance(-time.Hour)
			for k := range 2 {
				id := at(k, "failed")
				d := want{id: id, json: doc(id, 791+int64(k), fmt.Sprint("mended ", k), failed), end: invoice.Committed}
				w.put(d)
				w.wroteBefore(d)
				w.evidenceBefore(d)
				w.path.runs.want[theRun][id] = invoice.OutcomeApplied
			}
			w.advance(time.Hour)
			w.shown()
		})
	p.runs.seed = func(r *runs) {
		row := run.Run{ID: theRun, SysName: sysName, Kind: run.Replay, RequestedBy: "operator", Why: "a test"}
		r.must(r.store.StartRun(context.Background(), row, audit(run.CodeRunStart, theRun, "")))
		r.w.opened(kind, begins().Add(time.Second))
	}
	w := newWorld(p, nil, nil)
	w.run()
	for _, v := range w.seen {
		t.Log(v)
	}
	require.Equal(t, run.RunCompleted, w.runs.row(theRun).Status, "%s", w.runs.restless())
	require.Equal(t, map[invoice.Outcome]int{invoice.OutcomeApplied: 2}, outcomesOf(w.runs, theRun))
}

func outcomesOf(r *runs, id string) map[invoice.Outcome]int {
	stats, err := r.store.Stats(context.Background(), id)
	if err != nil {
		panic(err)
	}
	return stats.Outcomes
}

// TestAKilledCheckpointRunGoesOnAtTheNextCheckpoint: the manager is killed before or after every step. The next one
// begins where the watermark is and asks again for the pages of one checkpoint at most; no document gets a second row.
// (That no page is asked for again once all of it has rows is asserted at every call: runs.asked.)
func TestAKilledCheckpointRunGoesOnAtTheNextCheckpoint(t *testing.T) {
	t.Parallel()
	p := handOffPath()
	clean, same := without(t, p)
	require.Equal(t, 3, clean.runs.count.pages)
	managers := map[int]int{}
	for n, s := range clean.steps {
		for _, k := range []kind{crashBefore, crashAfter} {
			w := try(p, plan{{n + 1, k}}, same, nil)
			require.Empty(t, w.report(), "%s %s", k, s)
			const perCheckpoint = 2 // three documents are on two pages
			require.LessOrEqual(t, w.runs.count.pages, clean.runs.count.pages+perCheckpoint, "%s %s", k, s)
			require.Equal(t, 5, w.runs.row(theRun).Documents)
			managers[w.runs.count.runClaims]++
		}
	}
	require.Greater(t, managers[2], 20, "the hand-off was gone on with: %v", managers)
}
