package sqlserver_test

import (
	"database/sql"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"sqlwriter/internal/adopt"
	"sqlwriter/internal/breaker"
	"sqlwriter/internal/commit"
	"sqlwriter/internal/fault"
	"sqlwriter/internal/retention"
	"sqlwriter/internal/store/sqlserver"
	"sqlwriter/test/conformance"
	"sqlwriter/test/sqltest"
)

func TestRetention(t *testing.T) {
	ctx, d := t.Context(), newDatabase(t)
	d.harness(t).AddLines(t, 1)
	state, err := d.store.Begin(ctx, adopt.State{}, "ann")
	require.NoError(t, err)
	_, err = d.store.Finish(ctx, state.Run, 0)
	require.NoError(t, err)
	_, err = d.store.Apply(ctx, []commit.Item{sqltest.Item("a", 1, 1)}, commit.Write, breaker.Heartbeat{})
	require.NoError(t, err)
	_, err = d.store.Heartbeat(ctx, breaker.Heartbeat{SysName: "web"})
	require.NoError(t, err)
	for _, set := range []string{"ledger SET applied_at", "adoption SET finished_at", "heartbeat SET raised_at"} {
		d.spy.Exec(t, "UPDATE sqlwriter."+set+" = '2001-01-01'")
	}
	conformance.TestRetention(t, func(t testing.TB) conformance.RetentionFixture {
		d.spy.Exec(t, `DELETE FROM sqlwriter.finding; DELETE FROM sqlwriter.comparison`)
		return conformance.RetentionFixture{
			RunStore: d.runs(t), Retention: d.store.Retention("web"), OtherRetention: d.store.Retention("dev"),
			OtherRuns: d.store.RunStore("dev"),
			Findings:  d.store.Findings("web"), OtherFindings: d.store.Findings("dev"), Rows: d.spy.Counts,
			Kept:        func(t testing.TB) string { return d.spy.Text(t, "ledger", "adoption", "heartbeat") },
			KeepAudits:  d.spy.KeepAudits,
			HideWorkers: func(t testing.TB) func() { return d.rename(t, "worker") },
		}
	})
}

// Whoever may execute the procedure, and however: it refuses by itself.
func TestTheProcedureRefusesTooFewDays(t *testing.T) {
	d := newDatabase(t)
	d.spy.Insert(t, "audit_log", map[string]any{
		"done_at": time.Now().Add(-40 * 24 * time.Hour), "sys_name": "web", "action": "X", "done_by": "ann",
		"why": "w", "subject": "s",
	})
	state, err := d.store.ProcedureState(t.Context())
	require.NoError(t, err)
	for _, days := range []any{retention.LeastDays - 1, 0, -40, sql.NullInt64{}} {
		_, err := d.db.Exec(`EXEC sqlwriter.purge_`+state.Hash+
			` @part = 'audit_log', @days = @days, @limit = 10, @sys_name = N'web'`, sql.Named("days", days))
		err = sqlserver.Classify(err)
		require.Equal(t, []any{fault.Internal, retention.CodeDays},
			[]any{fault.KindOf(err), fault.CodeOf(err)}, "%v: %v", days, err)
		require.Equal(t, 1, d.spy.Counts(t)["audit_log"])
	}
}
