package comparison

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"sqlwriter/internal/fault"
	"sqlwriter/internal/invoice"
	"sqlwriter/internal/ops"
	"sqlwriter/internal/reconcile"
	"sqlwriter/internal/retention"
	"sqlwriter/internal/run"
)

// forEach runs a test on each database.
func forEach(t *testing.T, test func(w *world)) {
	for name, open := range databases() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(newWorld(t, open, inMemoryContainer))
		})
	}
}

// days lets time pass, for the container and for our tables.
func (w *world) days(n int) {
	w.Helper()
	w.pass(time.Duration(n) * day)
	w.db.age(w, n)
}

// rowsOfFailures are the rows of a run of failures beside its error details: itself, a batch, a document, a manager and
// a worker.
const rowsOfFailures = 5

// failures stores error details in a run of their own that has ended.
func (w *world) failures(n int) {
	w.Helper()
	id := fmt.Sprint("failures-", w.now().UnixNano())
	w.openRun(id, "d")
	a := run.Audit{Action: run.CodeRunCancel, Level: run.LevelInfo, By: "ann", Why: "a test", Run: id}
	c, err := w.db.runs.ClaimBatch(w.Context(), run.BatchID(sysName, id, 1),
		run.Ticket{Attempt: run.FirstAttempt, Epoch: -1},
		run.Worker{ID: "worker of " + id, Instance: "x"}, time.Minute, a)
	require.NoError(w, err)
	require.Equal(w, run.Taken, c.Answer)
	for ; n > 0; n -= 100 {
		details := slices.Repeat(
			[]run.ErrorDetail{{Document: "d", Code: "2628", Message: "x", Type: run.TypeMigration}}, min(n, 100))
		require.NoError(w, w.db.runs.SaveOutcomes(w.Context(), c.Lease, nil, details))
	}
	require.NoError(w, w.db.runs.FailBatch(w.Context(), c.Lease, "x", a))
	_, err = w.db.runs.CancelRun(w.Context(), id, a)
	require.NoError(w, err)
	ended, err := w.db.runs.CompleteRun(w.Context(), id, 0, func(run.RunStatus, run.Stats) run.Audit { return a })
	require.NoError(w, err)
	require.True(w, ended)
}

// lastCompleted is the comparison at which the next one begins.
func (w *world) lastCompleted() (id string, began time.Time) {
	w.Helper()
	c, there, err := w.db.Last(w.Context())
	require.NoError(w, err)
	require.True(w, there)
	return c.ID, c.BegunAt
}

// openRun is a run that is handing off, with a batch.
func (w *world) openRun(id string, documents ...string) {
	w.Helper()
	a := run.Audit{Action: run.CodeRunStart, Level: run.LevelInfo, By: "ann", Why: "a test", Run: id}
	r := run.Run{ID: id, SysName: sysName, Kind: run.Drain, RequestedBy: "ann", Why: "a test"}
	require.NoError(w, w.db.runs.StartRun(w.Context(), r, a))
	r, ok, err := w.db.runs.ClaimRun(w.Context(), id, 0, -1,
		run.Worker{ID: "manager of " + id, Instance: "x"}, time.Minute)
	require.NoError(w, err)
	require.True(w, ok)
	lease := run.RunLease{Run: id, Owner: "manager of " + id, Epoch: r.Epoch}
	require.NoError(w, w.db.runs.AddChunk(w.Context(), lease, run.Chunk{Batches: [][]string{documents}, First: 1}, a))
}

// Each night somebody breaks a line, the night mends it by a run, and a document fails. After RETENTION_DAYS the tables
// grow no more, and the audit log after a year. What is open stays whole, and each night begins where the last one did.
func TestOverManyNightsTheTablesStayBounded(t *testing.T) {
	forEach(t, func(w *world) {
		nights, same := 220, 30
		if testing.Short() || w.db.name == "server" { // 220 nights on Babelfish take some minutes, and end the same
			nights, same = 110, 15
		}
		w.db.keepAudits(w, 365)
		ids := w.consistent(1, int64(nights)+10)
		w.offer(ids...)
		lines := len(w.links)
		w.openRun("open", ids[:2]...)
		w.pass(6 * time.Hour)
		w.db.set(w, invoice.Detail, maker, byHand, 1)
		w.compare(false)
		w.db.set(w, invoice.Detail, maker, byHand, 2)
		last, _ := w.lastCompleted()
		rows := map[int]map[string]int{}
		for night := 1; night <= nights; night++ {
			w.days(1)
			w.db.remove(w, invoice.Tracking, int64(night+2))
			w.failures(3)
			is, began := w.lastCompleted()
			require.Equal(w, last, is)
			require.WithinDuration(w, w.now().Add(-day), began, 3*time.Hour)
			n := w.compare(false)
			w.purge(90)
			require.Len(w, n.mended, 1, "night %d", night)
			require.Less(w, n.compared.Counts[reconcile.Consistent], lines+20,
				"only what changed since the last night is compared")
			last, rows[night] = n.compared.ID, w.db.rowsOf(w)
		}
		w.Logf("%s: rows after %d nights %v, after %d %v", w.db.name, nights-same,
			rows[nights-same], nights, rows[nights])
		for table, n := range rows[nights] {
			if table != "audit_log" { // its own row keeps it a year, however short RETENTION_DAYS is: its end is below
				require.LessOrEqual(w, n, rows[nights-same][table], table)
			}
		}
		require.LessOrEqual(w, rows[nights]["run"], 2*92+2)

		for line := range int64(2) {
			require.Contains(w, keys(w.found()),
				reconcile.Key{Class: reconcile.Edited, Line: line + 1, Document: idOf(line + 1)})
		}
		items, err := w.db.runs.Items(w.Context(), "open", nil, "", 10)
		require.NoError(w, err)
		require.Len(w, items, 2)
		r, there, err := w.db.runs.Run(w.Context(), "open")
		require.NoError(w, err)
		require.True(w, there)
		require.Equal(w, []any{run.RunRunning, 1, 2}, []any{r.Status, r.Batches, r.Documents})

		aNight := (rows[nights]["audit_log"] - rows[nights-same]["audit_log"]) / same
		w.days(355 - nights) // comparisons take some days themselves
		w.compare(false)
		w.purge(90)
		require.GreaterOrEqual(w, w.db.rowsOf(w)["audit_log"], rows[nights]["audit_log"],
			"nothing of the audit log goes within a year")
		w.days(nights + 10)
		w.compare(false)
		w.purge(90)
		require.LessOrEqual(w, w.db.rowsOf(w)["audit_log"], 3*aNight,
			"after it all of it goes but the last two comparisons' entries")
	})
}

// RETENTION_DAYS=0 keeps all, for years.
func TestNoDaysKeepAll(t *testing.T) {
	forEach(t, func(w *world) {
		w.offer(w.consistent(1, 10)...)
		w.failures(5)
		for range 3 {
			w.days(1)
			w.compare(false)
		}
		before := w.db.rowsOf(w)
		w.days(1000)
		w.compare(false)
		require.Zero(w, w.purge(0))
		for table, rows := range w.db.rowsOf(w) {
			require.GreaterOrEqual(w, rows, before[table], table)
		}
	})
}

// No night for 100 days, and then a purge: the last comparison is as old as what goes, and stays, because the next one
// begins there.
func TestTheLastComparisonOutlivesItsAge(t *testing.T) {
	forEach(t, func(w *world) {
		w.offer(w.consistent(1, 10)...)
		for range 3 {
			w.days(1)
			w.compare(false)
		}
		id, began := w.lastCompleted()
		w.days(100)
		require.NotZero(w, w.purge(30))
		is, at := w.lastCompleted()
		require.Equal(w, id, is)
		require.Equal(w, began, at)
		require.Equal(w, 1, w.db.rowsOf(w)["comparison"])
	})
}

// purge deletes what is older than days, tick by tick until none is left. After an error of SQL the next tick goes on.
func (w *world) purge(days int) (rows int) {
	w.Helper()
	for {
		n, err := retention.Tick(w.Context(), w.db.retention, days, w.now)
		rows += n
		if fault.IsDependency(err) || fault.KindOf(err) == fault.Contention {
			continue
		}
		require.NoError(w, err)
		if n == 0 {
			return rows
		}
	}
}

// A drain beside a purge commits every document, and the purge every old row.
func TestADrainBesideAPurge(t *testing.T) {
	forEach(t, func(w *world) {
		const old = 5000
		w.failures(old)
		w.days(91)
		w.failures(7)
		ids := w.consistent(1, 300)
		n, err := w.ops.StartRun(w.operator(), ops.StartRequest{Kind: run.Drain, Why: "a test"})
		require.NoError(w, err)
		w.db.began(w, n.Run, w.now())
		drained := make(chan error)
		go func() {
			_, err := w.executor().Execute(w.Context(), n.Run)
			drained <- err
		}()
		require.Equal(w, old+rowsOfFailures, w.purge(90))
		require.NoError(w, <-drained)
		for _, id := range ids {
			d, _ := w.read(id)
			require.Equal(w, invoice.Committed, d.State.Status, id)
		}
		require.Equal(w, 7, w.db.rowsOf(w)["error_detail"])
	})
}
