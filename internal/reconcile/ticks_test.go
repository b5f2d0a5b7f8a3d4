package reconcile_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/rs/zerolog"
	"github.com/stretchr/testify/require"

	"sqlwriter/internal/fault"
	"sqlwriter/internal/reconcile"
	"sqlwriter/internal/run"
)

// chicago is a world in America/Chicago at a time there.
func chicago(t *testing.T, year int, month time.Month, day, hour, minute int) *world {
	t.Helper()
	w := newWorld(t)
	zone, err := time.LoadLocation("America/Chicago")
	require.NoError(t, err)
	w.options.Location, w.clock = zone, time.Date(year, month, day, hour, minute, 0, 0, zone)
	return w
}

// nights are the ids of the comparisons in the order of their begin, by the audit log.
func (w *world) nights() (ids []string) {
	for _, a := range w.store.Audits() {
		if a.Action == run.CodeCompare && a.By == reconcile.ByTimer {
			ids = append(ids, string(a.Detail[len(`{"comparison":"`):len(`{"comparison":"2025-12-18`)]))
		}
	}
	return ids
}

// Three days of ticks begin one comparison each night, whatever the clock does: at 02:00, which the spring skips, and
// at 01:30, which the autumn has twice.
func TestOneComparisonANight(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		at    time.Duration
		month time.Month
		day   int
		want  []string
		// first are when they begin on the day of the change, in UTC.
		begins time.Time
	}{
		// an hour before the hour that is missing
		"spring, skipped": {
			2 * time.Hour, 3, 7,
			[]string{"2026-03-07", "2026-03-08", "2026-03-09"},
			time.Date(2026, 3, 8, 7, 0, 0, 0, time.UTC),
		},
		"autumn, twice": {
			90 * time.Minute, 10, 31,
			[]string{"2026-10-31", "2026-11-01", "2026-11-02"},
			time.Date(2026, 11, 1, 6, 30, 0, 0, time.UTC),
		},
		"autumn, at two": {
			2 * time.Hour, 10, 31,
			[]string{"2026-10-31", "2026-11-01", "2026-11-02"},
			time.Date(2026, 11, 1, 8, 0, 0, 0, time.UTC),
		},
		"at midnight": {0, 3, 7, []string{"2026-03-08", "2026-03-09"}, time.Date(2026, 3, 8, 6, 0, 0, 0, time.UTC)},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := chicago(t, 2026, c.month, c.day, 0, 0)
			w.options.At = c.at
			require.NoError(t, w.tick()) // the night before, which was missed
			missed := len(w.nights())
			var begun time.Time
			for end := time.Date(2026, c.month, c.day, 23, 59, 0, 0, w.options.Location).AddDate(0, 0,
				2); w.clock.Before(end); {
				before, at := len(w.nights()), w.clock
				require.NoError(t, w.tick())
				if ids := w.nights(); len(ids) > before &&
					ids[len(ids)-1] == c.begins.In(w.options.Location).Format(time.DateOnly) {
					begun = at
				}
			}
			require.Equal(t, c.want, w.nights()[missed:])
			require.WithinRange(t, begun, c.begins, c.begins.Add(5*time.Minute))
		})
	}
}

// The app stood still for two nights: at its first tick the last of them begins, and compares what changed since the
// one before.
func TestANightThatWasMissedBeginsLate(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.consistent(3)
	w.night()
	w.pass(30 * time.Hour)
	w.put(document(1, 1, "CHANGED", stateOf(w.doc(w.idOf(1)).State)))
	w.pass(30 * time.Hour)
	w.finish()
	require.Equal(t, []string{"2025-12-18", "2025-12-19", "2025-12-21"}, w.nights())
	require.Equal(t, []string{"stale 1 " + w.idOf(1)}, w.found())
}

// A night that takes longer than a day keeps the others waiting: one comparison goes on, and then the last night
// begins.
func TestALongNightKeepsTheOthersWaiting(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.consistent(3)
	w.toTheNight()
	w.before = func(call string) error {
		if call == "Changed" {
			return fault.New(fault.Infrastructure, "test", "away", "Cosmos DB is away")
		}
		return nil
	}
	for range 3 * 24 * 12 {
		require.Error(t, w.tick())
	}
	require.Equal(t, []string{"2025-12-18", "2025-12-19"}, w.nights())
	w.before = nil
	w.finish()
	require.NoError(t, w.tick())
	w.finish()
	require.Equal(t, []string{"2025-12-18", "2025-12-19", "2025-12-22"}, w.nights())
}

// Two ticks at once do one comparison: each step is saved once, however they interleave.
func TestTwoTicksAtOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.consistent(700)
	w.edit(1, "UPC_CD", "1")
	w.toTheNight()
	alone := newWorld(t)
	alone.consistent(700)
	alone.edit(1, "UPC_CD", "1")
	want := counted(alone.night())

	r := reconcile.New(reconcile.Ports{
		Rows: w.sink.ReconcileRows(sysName, 0), Findings: w.findings, Finder: w.docs, Breaker: ready{},
		Mend: func(context.Context, string) error { return nil },
	}, reconcile.Options{
		SysName: sysName, At: w.options.At, Log: zerolog.Nop(), Now: w.now,
		Wait: func(context.Context, time.Duration) error { return nil },
	})
	for range 10 {
		var both sync.WaitGroup
		for range 2 {
			both.Go(func() {
				if _, err := r.Tick(t.Context()); err != nil {
					t.Error(err)
				}
			})
		}
		both.Wait()
		w.pass(6 * time.Minute)
	}
	require.Equal(t, []string{"2025-12-18", "2025-12-19"}, w.nights())
	require.Equal(t, want, counted(w.last()))
	require.Equal(t, []string{"edited 1 " + w.idOf(1)}, w.found())
}

// ready is a breaker that lets all through.
type ready struct{}

func (ready) Permit(context.Context) error { return nil }

// A step that another tick has saved meanwhile is not saved again, and the tick leaves the comparison to the other.
func TestAStepThatAnotherTickDid(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.consistent(3)
	w.toTheNight()
	raced := false
	w.before = func(call string) error {
		if call == "Changed" && !raced {
			raced = true
			_, err := w.reconciler().Tick(t.Context())
			return err
		}
		return nil
	}
	steps, err := w.reconciler().Tick(t.Context())
	require.NoError(t, err)
	require.Zero(t, steps)
	w.finish()
	require.Equal(t, map[reconcile.Class]int{reconcile.Consistent: 2 * 4}, counted(w.last()))
}
