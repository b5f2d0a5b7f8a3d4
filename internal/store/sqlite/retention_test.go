package sqlite_test

import (
	"database/sql"
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"sqlwriter/internal/adopt"
	"sqlwriter/internal/breaker"
	"sqlwriter/internal/store/sqlite"
	"sqlwriter/test/conformance"
)

func TestRetention(t *testing.T) {
	t.Parallel()
	conformance.TestRetention(t, func(t testing.TB) conformance.RetentionFixture {
		d := db{newStore(t)}
		d.addLines(t, 1)
		state, err := d.Begin(t.Context(), adopt.State{}, "ann")
		require.NoError(t, err)
		_, err = d.Finish(t.Context(), state.Run, 0)
		require.NoError(t, err)
		apply(t, d.Store, item("a", 1, 1))
		_, err = d.Heartbeat(t.Context(), breaker.Heartbeat{SysName: "web"})
		require.NoError(t, err)
		for _, set := range []string{"ledger SET applied_at", "adoption SET finished_at", "heartbeat SET raised_at"} {
			d.exec(t, "UPDATE sqlwriter_"+set+" = '2001-01-01T00:00:00.000Z'")
		}
		return conformance.RetentionFixture{
			RunStore: d.runs(), Retention: d.Retention("web"), OtherRetention: d.Retention("dev"),
			OtherRuns: d.RunStore("dev"),
			Findings:  d.Findings("web"), OtherFindings: d.Findings("dev"), Rows: d.counts,
			Kept: func(t testing.TB) (all string) {
				for _, table := range []string{"ledger", "adoption", "heartbeat"} {
					all += d.text(t, "sqlwriter_"+table)
				}
				return all
			},
			KeepAudits: func(t testing.TB, sysName string, days int) {
				d.exec(t, `DELETE FROM sqlwriter_audit_retention WHERE sys_name = ?`, sysName)
				if days > 0 {
					d.exec(t, `INSERT INTO sqlwriter_audit_retention (sys_name, kept_days) VALUES (?, ?)`, sysName, days)
				}
			},
			HideWorkers: func(t testing.TB) func() { return d.hide(t, "sqlwriter_worker", "") },
		}
	})
}

// It is kept as long as evidence, at least (deploy/storage/lifecycle.json).
func TestTheAuditLogIsKeptAYear(t *testing.T) {
	_, err := newStore(t).Writer().Exec(`INSERT INTO sqlwriter_audit_retention (sys_name, kept_days) VALUES ('web', 364)`)
	require.ErrorContains(t, err, "CHECK constraint failed")
}

// text has all values of a table of one row.
func (d db) text(t testing.TB, table string) string {
	t.Helper()
	var columns int
	require.NoError(t, d.Reader().QueryRow("SELECT COUNT(*) FROM pragma_table_info(?)", table).Scan(&columns))
	return fmt.Sprint(d.row1(t, "SELECT * FROM "+table, columns))
}

// counts counts the rows of the tables that a purge is about.
func (d db) counts(t testing.TB) map[string]int {
	t.Helper()
	n := map[string]int{}
	for _, table := range conformance.PurgedTables() {
		var rows int
		require.NoError(t, d.Reader().QueryRow("SELECT COUNT(*) FROM sqlwriter_"+table).Scan(&rows))
		n[table] = rows
	}
	return n
}

// A purge of many rows must not read them all for each chunk, nor sort them.
func TestNoStatementOfAPurgeScansATable(t *testing.T) {
	texts, _, err := sqlite.Statements()
	require.NoError(t, err)
	conn, err := newStore(t).Writer().Conn(t.Context())
	require.NoError(t, err)
	defer func() { require.NoError(t, conn.Close()) }()
	found := 0
	for name, text := range texts {
		if !strings.HasPrefix(name, "purge_") {
			continue
		}
		found++
		var args []any
		for _, parameter := range regexp.MustCompile(`@(\w+)`).FindAllStringSubmatch(text, -1) {
			args = append(args, sql.Named(parameter[1], "0"))
		}
		for _, step := range planOf(t, conn, text, args...) {
			require.NotRegexp(t, `^SCAN|TEMP B-TREE`, step, name)
		}
	}
	require.Equal(t, 9, found)
}
