package ops_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"sqlwriter/internal/breaker"
	"sqlwriter/internal/fault"
	"sqlwriter/internal/invoice"
	"sqlwriter/internal/ops"
	"sqlwriter/internal/run"
	"sqlwriter/test/inmem"
)

// commitAll commits what is pending, as the feed does.
func (r *runs) commitAll(docs ...string) {
	r.t.Helper()
	r.put(docs...)
	res := r.start(ops.StartRequest{Kind: run.Drain, Here: true, Why: "x"})
	require.Equal(r.t, run.RunCompleted, res.Progress.Status)
	require.NoError(r.t, r.breaker.Tick(r.t.Context()))
}

// execute executes a run that was started, and returns its outcomes.
func (r *runs) execute(started *ops.Started) map[run.Outcome]int {
	r.t.Helper()
	_, err := r.executor().Execute(r.t.Context(), started.Run)
	require.NoError(r.t, err)
	stats, err := r.store.Stats(r.t.Context(), started.Run)
	require.NoError(r.t, err)
	return stats.Outcomes
}

// filter is the filter of a run.
func (r *runs) filter(started *ops.Started) (row run.Run, f run.Filter) {
	r.t.Helper()
	row, ok, err := r.store.Run(r.t.Context(), started.Run)
	require.NoError(r.t, err)
	require.True(r.t, ok)
	require.NoError(r.t, json.Unmarshal(row.Filter, &f))
	return row, f
}

// restored is a database that was replaced by its backup: line 1 has a newer result since, line 2 a first one, line 3 is unchanged. It
// returns the time of the backup.
func (r *runs) restored() time.Time {
	r.t.Helper()
	r.sink.AddLines(1, 2, 3)
	r.commitAll(result(1, "old", ""), result(3, "c", ""))
	r.clock = r.clock.Add(24 * time.Hour)
	backup, taken := r.sink.Backup(), r.clock
	r.clock = r.clock.Add(time.Hour)
	r.commitAll(documentOf("2025-12-17 11:00:00.000000-06:00-0001-1", "web", 1, "newer", ""), result(2, "b", ""))
	r.clock = r.clock.Add(time.Minute)
	r.sink.Restore(backup)
	return taken
}

// The flow was stopped by the database, paused before the restore, or runs because nobody wrote since.
func TestARestoredDatabaseIsBroughtUpToDate(t *testing.T) {
	for name, before := range map[string]func(r *runs){
		"stopped": func(r *runs) {
			require.True(t, breaker.Refused(r.breaker.Tick(t.Context())))
			require.Equal(t, breaker.StoppedFlow, r.flow().Flow())
		},
		"paused": func(r *runs) {
			_, err := r.ops.Pause(by(t, "kim"), flowRequest("a restore"))
			require.NoError(t, err)
		},
		"running": func(*runs) {},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRuns(t)
			since := r.restored()
			before(r)
			request := ops.ResumeFlow{DatabaseRestored: true, Since: since, DryRun: true}
			all := r.snapshot()
			counted, err := r.ops.Resume(by(t, "kim"), request)
			require.NoError(t, err)
			require.Equal(t, []any{true, 2, run.Reapply}, []any{counted.DryRun, counted.Reapply.Matched, counted.Reapply.Kind})
			require.Equal(t, all, r.snapshot(), "a dry run changes nothing")

			request.DryRun, request.Why = false, "the disk broke"
			change, err := r.ops.Resume(by(t, "kim"), request)
			require.NoError(t, err)
			require.Equal(t, []any{true, breaker.RampingUp, true}, []any{change.Accepted, change.Is.State, change.Audited})
			_, err = r.store.Stats(t.Context(), change.Compare.Run)
			require.NoError(t, err)
			row, filter := r.filter(change.Compare)
			require.Equal(t, []any{run.Reconcile, true, change.Reapply.Run, false}, []any{row.Kind, filter.Whole, filter.Run, filter.Mend})
			require.Zero(t, row.Named, "it compares everything")
			_, filter = r.filter(change.Reapply)
			require.Equal(t, since.Add(-10*time.Minute), filter.From)
			require.Equal(t, []any{"kim", "the disk broke"}, []any{row.RequestedBy, row.Why})
			actions := map[string]int{}
			for _, a := range r.audits() {
				if a.By == "kim" {
					actions[a.Action]++
				}
			}
			delete(actions, ops.FlowPaused)
			require.Equal(t, map[string]int{ops.FlowForced: 1, run.CodeRunStart: 2}, actions)

			before := r.snapshot()["states"]
			require.Equal(t, map[run.Outcome]int{run.DocCommitted: 2}, r.execute(change.Reapply))
			require.Equal(t, []string{"newer", "b", "c"}, []string{r.makerOf(1), r.makerOf(2), r.makerOf(3)})
			require.Equal(t, before, r.snapshot()["states"], "a committed document is not patched")

			again, err := r.ops.Resume(by(t, "kim"), request)
			require.NoError(t, err, "the command may be repeated")
			require.False(t, again.Accepted)
			require.Equal(t, map[run.Outcome]int{run.DocUnchanged: 2}, r.execute(again.Reapply))
		})
	}
}

// What was marked since the backup is tried again and fails anew, and its mark comes back with its status.
func TestAFailureSinceTheBackupIsTriedAgain(t *testing.T) {
	r := newRuns(t)
	r.sink.AddLines(1)
	r.put(result(1, tooLong(), failed(1, fault.Document, "2628")))
	change, err := r.ops.Resume(by(t, "kim"), ops.ResumeFlow{DatabaseRestored: true, Since: r.clock.Add(-time.Hour), Why: "x"})
	require.NoError(t, err)
	require.False(t, change.Accepted, "the database is the one that was written to")
	require.Equal(t, map[run.Outcome]int{run.DocDeferred: 1}, r.execute(change.Reapply))
	require.Equal(t, []any{invoice.RetryScheduled, 1}, []any{r.state(1).Status, r.state(1).RetryCount})
}

func TestNothingWasWrittenSinceTheBackup(t *testing.T) {
	r := newRuns(t)
	change, err := r.ops.Resume(by(t, "kim"), ops.ResumeFlow{DatabaseRestored: true, Since: r.clock, Why: "x"})
	require.NoError(t, err)
	require.Empty(t, change.Reapply.Run)
	_, filter := r.filter(change.Compare)
	require.Equal(t, run.Filter{Whole: true}, filter)
}

// A new database gets every document that its ledger does not know: all of an empty one, none of what was adopted.
func TestANewDatabaseIsFilled(t *testing.T) {
	r := newRuns(t)
	r.sink.AddLines(1, 2)
	r.commitAll(result(1, "a", ""), result(2, "b", ""))
	r.clock = r.clock.Add(24 * time.Hour)
	other := inmem.NewSink()
	other.AddLines(1, 2)
	adopted, _ := r.sink.Entry(2)
	adopted.Outcome, adopted.DetailHash, adopted.TrackingHash = inmem.OutcomeAdopted, "", ""
	other.SetEntry(2, adopted)
	r.sink.Restore(other)
	err := r.breaker.Tick(t.Context())
	require.Equal(t, breaker.CodeOtherDatabase, fault.CodeOf(err))

	r.unfit = fault.New(fault.Infrastructure, "test", "ledger_not_adopted", "run ledger adopt")
	all := r.snapshot()
	_, err = r.ops.Resume(by(t, "kim"), ops.ResumeFlow{DatabaseNew: true, Why: "moved"})
	require.Equal(t, "ledger_not_adopted", fault.CodeOf(err))
	require.Equal(t, all, r.snapshot(), "nothing was changed")
	r.unfit = nil
	change, err := r.ops.Resume(by(t, "kim"), ops.ResumeFlow{DatabaseNew: true, Why: "moved"})
	require.NoError(t, err)
	require.True(t, change.Accepted)
	_, filter := r.filter(change.Reapply)
	require.Equal(t, run.Filter{}, filter)
	require.Equal(t, map[run.Outcome]int{run.DocCommitted: 1, run.DocUnchanged: 1}, r.execute(change.Reapply))
	require.Equal(t, []string{"a", ""}, []string{r.makerOf(1), r.makerOf(2)}, "what was adopted is not written")
}

// The database was accepted, and the runs could not be started: the same command goes on.
func TestAHalfDoneRestoreIsRepeated(t *testing.T) {
	r := newRuns(t)
	since := r.restored()
	require.Error(t, r.breaker.Tick(t.Context()))
	r.runStore.fails = fault.New(fault.Infrastructure, "test", "reset", "the connection was cut")
	request := ops.ResumeFlow{DatabaseRestored: true, Since: since, Why: "x"}
	_, err := r.ops.Resume(by(t, "kim"), request)
	require.ErrorContains(t, err, "the database was accepted, and not all runs were started: repeat the command")
	r.runStore.fails = nil
	change, err := r.ops.Resume(by(t, "kim"), request)
	require.NoError(t, err)
	require.Equal(t, map[run.Outcome]int{run.DocCommitted: 2}, r.execute(change.Reapply))
}

func TestInvalidResumesAreRefused(t *testing.T) {
	r := newRuns(t)
	r.readOnly = ""
	all := r.snapshot()
	for says, request := range map[string]ops.ResumeFlow{
		"database_new: goes without database_restored":              {DatabaseNew: true, DatabaseRestored: true, Since: start()},
		"force: goes without database_restored":                     {DatabaseNew: true, Force: true},
		"since: expected the time of the backup, found nothing":     {DatabaseRestored: true},
		"since: goes with database_restored":                        {Since: start()},
		"since: expected the time of the backup, found a later one": {DatabaseRestored: true, Since: start().Add(time.Hour)},
		"dry_run: goes with database_restored or database_new":      {DryRun: true},
		"why: expected the reason":                                  {DatabaseNew: true},
	} {
		if says != "why: expected the reason" {
			request.Why = "x"
		}
		_, err := r.ops.Resume(by(t, "kim"), request)
		require.Equal(t, ops.Usage, refusal(err), says)
		require.ErrorContains(t, err, says)
	}
	require.Equal(t, all, r.snapshot())
	r.readOnly = "MODE=shadow"
	r.renew()
	_, err := r.ops.Resume(by(t, "kim"), ops.ResumeFlow{DatabaseNew: true, Why: "x"})
	require.Equal(t, ops.Conflict, refusal(err))
}
