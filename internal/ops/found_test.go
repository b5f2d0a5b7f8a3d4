package ops_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"sqlwriter/internal/fault"
	"sqlwriter/internal/ops"
	"sqlwriter/internal/reconcile"
	"sqlwriter/internal/run"
)

// attends reports whether a status asks for attention because of findings.
func attends(s ops.Status) string { return alarms(s)["findings_open"] }

func TestTheStatusSaysWhetherSQLEqualsCosmos(t *testing.T) {
	r := newRuns(t)
	says := func() string {
		t.Helper()
		return r.tick().Counts.Findings.Says
	}
	require.Equal(t, "unknown: nothing was compared yet", says())
	r.compared()
	require.Equal(t, "none, SQL equals Cosmos, as of 2025-12-18T10:00:00-06:00", says())
	r.clock = r.clock.Add(time.Hour)
	r.finds(
		reconcile.Key{Class: reconcile.Edited, Line: 7}, reconcile.Key{Class: reconcile.Edited, Line: 8}, reconcile.Key{Class: reconcile.RowMissing, Line: 9},
	)
	require.Equal(t, "3 open (2 edited, 1 row_missing), as of 2025-12-18T10:00:00-06:00", says())
	require.Equal(t, "SQL does not equal Cosmos: 3 open findings (2 edited, 1 row_missing), as of 2025-12-18T10:00:00-06:00", attends(r.tick()))
	_, err := r.ops.FindingAccept(by(t, "kim"), ops.AcceptRequest{Findings: []string{"edited/7", "row_missing/9"}, Why: "x"})
	require.NoError(t, err)
	require.Equal(t, "1 open (1 edited), 2 accepted, as of 2025-12-18T10:00:00-06:00", says())
	_, err = r.ops.FindingAccept(by(t, "kim"), ops.AcceptRequest{Findings: []string{"edited/8"}, Why: "x"})
	require.NoError(t, err)
	require.Equal(t, "none open, SQL equals Cosmos but for 3 accepted, as of 2025-12-18T10:00:00-06:00", says())
	require.Empty(t, attends(r.tick()))
}

// The comparison mends some classes by itself. People look at these only when the second night still finds them.
func TestWhatTheNightMendsAsksForAttentionADayLater(t *testing.T) {
	r := newRuns(t)
	r.compared()
	r.finds(reconcile.Key{Class: reconcile.Stale, Line: 7, Document: "a"}, reconcile.Key{Class: reconcile.TrackingMissing, Line: 8})
	require.Equal(t, "2 open (1 stale, 1 tracking_missing), as of 2025-12-18T10:00:00-06:00", r.tick().Counts.Findings.Says)
	require.Empty(t, attends(r.tick()))
	r.clock = r.clock.Add(26 * time.Hour)
	require.Contains(t, attends(r.tick()), "2 open findings (1 stale, 1 tracking_missing)")
}

// While SQL is not asked, the last counts stay, with their age.
func TestFindingsThatCannotBeCountedKeepTheirLastNumbers(t *testing.T) {
	r := newRuns(t)
	r.compared()
	r.finds(reconcile.Key{Class: reconcile.Edited, Line: 7})
	r.tick()
	r.openSince(fault.Infrastructure, "refused", time.Minute, 0)
	r.clock = r.clock.Add(5 * time.Minute)
	heartbeats := r.sink.heartbeats
	s := r.tick()
	require.Equal(t, 1, s.Counts.Findings.Open)
	require.Contains(t, s.Counts.Findings.Says, "1 open (1 edited), as of 2025-12-18T10:00:00-06:00; counted at 2025-12-18T10:00:00-06:00: SQL is not asked while the flow is stopped")
	require.NotEmpty(t, attends(s))
	require.Equal(t, heartbeats, r.sink.heartbeats, "no probe was sent for it")
}

// The end of a comparison says what is open now. Other runs, and one that goes on, ask for no findings.
func TestAComparisonThatHasEndedShowsItsFindings(t *testing.T) {
	r := newRuns(t)
	r.compared()
	r.finds(reconcile.Key{Class: reconcile.Edited, Line: 7})
	page, err := r.ops.RunList(t.Context(), ops.RunQuery{})
	require.NoError(t, err)
	p, err := r.ops.RunShow(t.Context(), page.Runs[0].ID)
	require.NoError(t, err)
	require.Equal(t, 1, p.Findings.Open)
	n, err := r.ops.StartNightly(t.Context())
	require.NoError(t, err)
	p, err = r.ops.RunShow(t.Context(), n.Run)
	require.NoError(t, err)
	require.Nil(t, p.Findings, "it goes on")
	r.fill(1)
	p, err = r.ops.RunShow(t.Context(), r.start(replayAll()).Run)
	require.NoError(t, err)
	require.Nil(t, p.Findings)
}

// all means everything; a comparison takes nothing that searches for documents.
func TestWhatAComparisonIsStartedWith(t *testing.T) {
	r := newRuns(t)
	started := func(q ops.StartRequest) run.Filter {
		t.Helper()
		q.Kind, q.Why = run.Reconcile, "numbers do not match"
		res := r.start(q)
		require.Equal(t, []any{run.InPasses, "the timer executes it, for some minutes at a time"}, []any{res.Pattern, res.Note})
		_, f := r.filter(&res)
		return f
	}
	require.Equal(t, run.Filter{}, started(ops.StartRequest{}))
	require.Equal(t, run.Filter{Whole: true}, started(ops.StartRequest{All: true}))
	require.Equal(t, run.Filter{IDs: []string{"a", "b"}}, started(ops.StartRequest{IDs: []string{"a", "b", "a"}}))
	_, err := r.ops.StartRun(by(t, "kim"), ops.StartRequest{Kind: run.Reconcile, Run: "reapply-1", Why: "x"})
	require.Equal(t, ops.NotFound, refusal(err), "it would wait for nothing")
	require.NoError(t, r.store.StartRun(t.Context(), run.Run{ID: "reapply-1", SysName: "web", Kind: run.Reapply, Pattern: run.TwoPhase}, run.Audit{}))
	require.Equal(t, run.Filter{Run: "reapply-1", Whole: true}, started(ops.StartRequest{All: true, Run: "reapply-1"}), "it follows a run")
	for says, q := range map[string]ops.StartRequest{
		"kind: a reconcile goes with ids or all, run, and a rate": {Since: start()},
		"kind: a reconcile goes with ids or all":                  {Limit: 5},
		"dry_run: a reconcile changes no row":                     {DryRun: true},
		"ids: expected one of ids, since, run, findings and all":  {All: true, IDs: []string{"a"}},
		"overwrite_edits, not_comparable: go with a kind":         {NotComparable: true},
	} {
		q.Kind, q.Why = run.Reconcile, "x"
		_, err := r.ops.StartRun(by(t, "kim"), q)
		require.Equal(t, ops.Usage, refusal(err), says)
		require.ErrorContains(t, err, says)
	}
}
