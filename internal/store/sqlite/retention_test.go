package sqlite_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"sqlwriter/internal/adopt"
	"sqlwriter/internal/breaker"
	"sqlwriter/internal/store/sqlite"
	"sqlwriter/test/conformance"
	"sqlwriter/test/sqltest"
)

func TestRetention(t *testing.T) {
	t.Parallel()
	conformance.TestRetention(t, func(t testing.TB) conformance.RetentionFixture {
		d := spying(newStore(t))
		d.addLines(t, 1)
		state, err := d.Begin(t.Context(), adopt.State{}, "ann")
		require.NoError(t, err)
		_, err = d.Finish(t.Context(), state.Run, 0)
		require.NoError(t, err)
		apply(t, d.Store, sqltest.Item("a", 1, 1))
		_, err = d.Heartbeat(t.Context(), breaker.Heartbeat{SysName: "web"})
		require.NoError(t, err)
		for _, set := range []string{"ledger SET applied_at", "adoption SET finished_at", "heartbeat SET raised_at"} {
			d.spy.Exec(t, "UPDATE sqlwriter_"+set+" = '2001-01-01T00:00:00.000Z'")
		}
		return conformance.RetentionFixture{
			RunStore: d.runs(), Retention: d.Retention("web"), OtherRetention: d.Retention("dev"),
			OtherRuns: d.RunStore("dev"),
			Findings:  d.Findings("web"), OtherFindings: d.Findings("dev"), Rows: d.spy.Counts,
			Kept:        func(t testing.TB) string { return d.spy.Text(t, "ledger", "adoption", "heartbeat") },
			KeepAudits:  d.spy.KeepAudits,
			HideWorkers: func(t testing.TB) func() { return d.hide(t, "sqlwriter_worker", "") },
		}
	})
}

// It is kept as long as evidence, at least (deploy/storage/lifecycle.json).
func TestTheAuditLogIsKeptAYear(t *testing.T) {
	_, err := newStore(t).Writer().Exec(`INSERT INTO sqlwriter_audit_retention (sys_name, kept_days) VALUES ('web', 364)`)
	require.ErrorContains(t, err, "CHECK constraint failed")
}

// A purge of many rows must not read them all for each chunk, nor sort them.
func TestNoStatementOfAPurgeScansATable(t *testing.T) {
	s := newStore(t)
	texts, _, err := sqlite.Statements()
	require.NoError(t, err)
	found := 0
	for name, text := range texts {
		if !strings.HasPrefix(name, "purge_") {
			continue
		}
		found++
		for _, step := range planOf(t, s, text) {
			require.NotRegexp(t, `^SCAN|TEMP B-TREE`, step, name)
		}
	}
	require.Equal(t, 9, found)
}
