package reconcile_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"sqlwriter/internal/fault"
	"sqlwriter/internal/reconcile"
	"sqlwriter/internal/run"
)

// oldRows are more than one chunk of two parts.
func oldRows() map[reconcile.Part]int {
	return map[reconcile.Part]int{reconcile.ErrorDetails: 2500, reconcile.EndedRuns: 1000, reconcile.GoneFindings: 10, reconcile.AuditLog: 5}
}

// purges are the entries of the audit log about purges.
func (w *world) purges() (list []run.Audit) {
	for _, a := range w.store.Audits() {
		if a.Code == run.CodeRetentionPurge {
			list = append(list, a)
		}
	}
	return list
}

// After its report the nightly run purges part by part, in chunks, and says so once. What it purged is no document that it compared.
func TestANightEndsWithAPurge(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.consistent(3)
	w.old = oldRows()
	row := w.night(run.Filter{})
	require.Zero(t, w.calls["Purge"], "a person's run purges nothing")
	compared := row.Documents

	w.purge, w.calls = 90, map[string]int{}
	w.before = func(call string) error {
		require.True(t, call != "Purge" || w.calls["KeepReport"] == 2, "the report comes first")
		return nil
	}
	row = w.night(run.Filter{Mend: true, Whole: true})
	require.Equal(t, map[reconcile.Part]int{reconcile.ErrorDetails: 0, reconcile.EndedRuns: 0, reconcile.GoneFindings: 0, reconcile.AuditLog: 0}, w.old)
	require.Equal(t, map[reconcile.Part]int{reconcile.ErrorDetails: 90, reconcile.EndedRuns: 90, reconcile.GoneFindings: 90, reconcile.AuditLog: 365}, w.purged, "days by part")
	require.Equal(t, 4+2+2+2, w.calls["Purge"], "a part is over when nothing is left of it")
	require.Equal(t, []int{3515, compared}, []int{row.Counts["purged"], row.Documents})
	require.Len(t, w.purges(), 1)
	entry := w.purges()[0]
	require.Equal(t, []string{"INFO", row.ID, "ann", "old rows deleted: 3515"}, []string{entry.Level, entry.Run, entry.By, entry.Why})
	require.JSONEq(t, `{"days":90,"purged":{"error_details":2500,"runs":1000,"findings":10,"audit_log":5}}`, string(entry.Detail))

	w.before = nil
	w.night(run.Filter{})
	require.Len(t, w.purges(), 1, "nothing was old")
}

// SQL is away in the middle of a purge: the run waits, and goes on with the part and the counts that it had.
func TestAPurgeWaitsForSQL(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.consistent(3)
	w.old, w.purge = oldRows(), 90
	refused := 0
	w.before = func(call string) error {
		if call == "Purge" && w.calls[call] > 3 && refused < 3 {
			refused++
			return fault.New(fault.Infrastructure, "test", "refused", "no connection")
		}
		return nil
	}
	began := w.now()
	row := w.night(run.Filter{})
	require.Equal(t, 3, refused)
	require.Greater(t, w.now().Sub(began).Seconds(), 5.0)
	require.Equal(t, 3515, row.Counts["purged"])
	require.JSONEq(t, `{"days":90,"purged":{"error_details":2500,"runs":1000,"findings":10,"audit_log":5}}`, string(w.purges()[0].Detail))
}

// The process is killed before or after each call of a purge. All that is old goes, one entry says so, and one chunk at most is not counted.
func TestAKillInAPurge(t *testing.T) {
	t.Parallel()
	play := func(kill int, after bool) (w *world, counted int) {
		w = newWorld(t)
		w.consistent(1)
		w.old, w.purge = oldRows(), 90
		n := 0
		hook := func(call string) error {
			if call == "Purge" || call == "WriteOnce" {
				if n++; n == kill {
					return killed()
				}
			}
			return nil
		}
		if w.before = hook; after {
			w.before, w.after = nil, hook
		}
		counted = w.night(run.Filter{}).Counts["purged"]
		w.calls["all"] = n
		return w, counted
	}
	without, all := play(0, false)
	require.Equal(t, 3515, all)
	for kill := 1; kill <= without.calls["all"]; kill++ {
		for _, after := range []bool{false, true} {
			w, counted := play(kill, after)
			require.Equal(t, without.old, w.old, "%d %v", kill, after)
			require.Len(t, w.purges(), 1, "%d %v", kill, after)
			require.LessOrEqual(t, counted, all)
			require.GreaterOrEqual(t, counted, all-reconcile.MaxPurge)
			require.True(t, after || counted == all, "%d: nothing had gone", kill)
		}
	}
}

// A night ends with a bound, so that the next one is started; that one goes on.
func TestANightPurgesSoManyRows(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.old, w.purge = map[reconcile.Part]int{reconcile.ErrorDetails: 10, reconcile.EndedRuns: 2_000_990}, 90
	require.Equal(t, 2_000_010, w.night(run.Filter{}).Counts["purged"])
	require.Equal(t, 990, w.night(run.Filter{}).Counts["purged"])
	require.Equal(t, []string{"old rows deleted: 2000010", "old rows deleted: 990"}, []string{w.purges()[0].Why, w.purges()[1].Why})
}
