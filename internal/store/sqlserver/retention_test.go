package sqlserver_test

import (
	"database/sql"
	"fmt"
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
)

func TestRetention(t *testing.T) {
	ctx, d := t.Context(), newDatabase(t)
	d.harness(t).AddLines(t, 1)
	state, err := d.store.Begin(ctx, adopt.State{}, "ann")
	require.NoError(t, err)
	_, err = d.store.Finish(ctx, state.Run, 0)
	require.NoError(t, err)
	_, err = d.store.Apply(ctx, []commit.Item{item("a", 1, 1)}, commit.Write, breaker.Heartbeat{})
	require.NoError(t, err)
	_, err = d.store.Heartbeat(ctx, breaker.Heartbeat{SysName: "web"})
	require.NoError(t, err)
	for _, set := range []string{"ledger SET applied_at", "adoption SET finished_at", "heartbeat SET raised_at"} {
		d.exec(t, "UPDATE sqlwriter."+set+" = '2001-01-01'")
	}
	conformance.TestRetention(t, func(t testing.TB) conformance.RetentionFixture {
		d.exec(t, `DELETE FROM sqlwriter.finding; DELETE FROM sqlwriter.comparison`)
		return conformance.RetentionFixture{
			RunStore: d.runs(t), Retention: d.store.Retention("web"), OtherRetention: d.store.Retention("dev"),
			OtherRuns: d.store.RunStore("dev"),
			Findings:  d.store.Findings("web"), OtherFindings: d.store.Findings("dev"), Rows: d.counts,
			Kept: func(t testing.TB) (all string) {
				for _, table := range []string{"ledger", "adoption", "heartbeat"} {
					all += d.text(t, table)
				}
				return all
			},
			KeepAudits:  d.keepAudits,
			HideWorkers: func(t testing.TB) func() { return d.rename(t, "worker") },
		}
	})
}

// keepAudits is the row of deploy/sql/audit_retention.sql; 0 days for none.
func (d *database) keepAudits(t testing.TB, sysName string, days int) {
	t.Helper()
	d.exec(t, `DELETE FROM sqlwriter.audit_retention WHERE sys_name = N'`+sysName+`'`)
	if days > 0 {
		d.exec(t, fmt.Sprintf(`INSERT INTO sqlwriter.audit_retention (sys_name, kept_days) VALUES (N'%s', %d)`, sysName, days))
	}
}

// text has all values of one of our tables.
func (d *database) text(t testing.TB, table string) (text string) {
	t.Helper()
	rows, err := d.db.Query(`SELECT * FROM sqlwriter.` + table)
	require.NoError(t, err)
	defer func() { require.NoError(t, rows.Close()) }()
	columns, err := rows.Columns()
	require.NoError(t, err)
	values, into := make([]any, len(columns)), make([]any, len(columns))
	for i := range values {
		into[i] = &values[i]
	}
	for rows.Next() {
		require.NoError(t, rows.Scan(into...))
		text += fmt.Sprintln(values...)
	}
	require.NoError(t, rows.Err())
	return text
}

// counts counts the rows of the tables that a purge is about.
func (d *database) counts(t testing.TB) map[string]int {
	t.Helper()
	n := map[string]int{}
	for _, table := range conformance.PurgedTables() {
		var rows int
		require.NoError(t, d.db.QueryRow(`SELECT COUNT(*) FROM sqlwriter.`+table).Scan(&rows))
		n[table] = rows
	}
	return n
}

// Whoever may execute the procedure, and however: it refuses by itself.
func TestTheProcedureRefusesTooFewDays(t *testing.T) {
	d := newDatabase(t)
	d.insert(t, "audit_log", map[string]any{
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
		require.Equal(t, 1, d.counts(t)["audit_log"])
	}
}
