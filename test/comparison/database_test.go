package comparison

import (
	"context"
	"database/sql"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"sqlwriter/internal/commit"
	"sqlwriter/internal/invoice"
	"sqlwriter/internal/ops"
	"sqlwriter/internal/reconcile"
	"sqlwriter/internal/retention"
	"sqlwriter/internal/run"
	"sqlwriter/internal/store/sqlite"
	"sqlwriter/internal/store/sqlserver"
	"sqlwriter/test/inmem"
	"sqlwriter/test/sqlitetest"
	"sqlwriter/test/sqlservertest"
)

// database is one with the user's tables, ours, and direct access for other programs.
type database struct {
	name string
	sink commit.Sink
	rows reconcile.Rows
	runs run.Store
	// retention deletes old rows, and audit has the entries of the audit log.
	retention retention.Store
	audit     ops.AuditLog
	reconcile.Findings
	direct
	// empty says that there is no history to adopt.
	empty func(ctx context.Context, who string) error
	// everything is the content of all tables, to be compared.
	everything func(t testing.TB) any
}

// direct is what people and other programs do to the tables.
type direct interface {
	// addLines makes detail rows.
	addLines(t testing.TB, ids ...int64)
	// remove deletes rows of a table.
	remove(t testing.TB, table invoice.Table, ids ...int64)
	// set changes a column of rows.
	set(t testing.TB, table invoice.Table, column, value string, ids ...int64)
	// forget deletes rows of the ledger; ledger changes some.
	forget(t testing.TB, ids ...int64)
	ledger(t testing.TB, change ledgerChange, ids ...int64)
	// began sets when a run or a comparison began: time passes for the world, and not for a server.
	began(t testing.TB, run string, at time.Time)
	// age lets days pass for what our tables know of runs, findings and the audit log, but for the begin of runs.
	// rowsOf counts the rows of each of these tables.
	age(t testing.TB, days int)
	rowsOf(t testing.TB) map[string]int
}

// ledgerChange is what becomes of rows of the ledger.
type ledgerChange string

const (
	// otherHash: they were written by a build with another hash version.
	otherHash ledgerChange = "other hash version"
	// adoptedLine: they were adopted.
	adoptedLine ledgerChange = "adopted"
	// markedLine: they have the failure mark of their document.
	markedLine ledgerChange = "marked"
	// otherSystem: they are another environment's.
	otherSystem ledgerChange = "of another environment"
	// laterTS: their snapshot has a later _ts, as before the container's clock went back.
	laterTS ledgerChange = "with a later _ts"
)

// databases are those that can be had here, by name.
func databases() map[string]func(t testing.TB, now func() time.Time) database {
	all := map[string]func(t testing.TB, now func() time.Time) database{"memory": inMemory, "sqlite": onSQLite}
	if sqlservertest.Named() {
		all["server"] = onServer
	}
	return all
}

func inMemory(_ testing.TB, now func() time.Time) database {
	sink, runs := inmem.NewSink(), inmem.NewRunStore(now, sysName)
	return database{
		name: "memory", sink: sink, rows: sink.ReconcileRows(sysName), runs: runs, Findings: runs.Findings(sink),
		retention: runs.Retention(),
		audit:     runs.AuditLog(), direct: inMaps{sink, runs}, empty: sink.MarkEmpty,
		everything: func(testing.TB) any { return []any{sink.Backup(), runs.Audits()} },
	}
}

// inMaps are the tables in memory.
type inMaps struct {
	sink *inmem.Sink
	runs *inmem.RunStore
}

func (m inMaps) addLines(_ testing.TB, ids ...int64) { m.sink.AddLines(ids...) }

func (m inMaps) remove(t testing.TB, table invoice.Table, ids ...int64) {
	t.Helper()
	for _, id := range ids {
		if table == invoice.Detail {
			m.sink.DeleteLine(id)
			continue
		}
		m.change(t, id, func(l *inmem.Line) {
			l.Tracking = false
			for i, c := range invoice.Columns() {
				if c.Table == invoice.Tracking {
					l.Values[i] = invoice.Null()
				}
			}
		})
	}
}

func (m inMaps) set(t testing.TB, table invoice.Table, column, value string, ids ...int64) {
	t.Helper()
	at := slices.IndexFunc(invoice.Columns(), func(c invoice.Column) bool {
		return c.Table == table && c.Name == column
	})
	for _, id := range ids {
		m.change(t, id, func(l *inmem.Line) { l.Values[at] = invoice.Of(value) })
	}
}

func (m inMaps) change(t testing.TB, id int64, change func(*inmem.Line)) {
	t.Helper()
	l, ok := m.sink.Line(id)
	require.True(t, ok, "line %d", id)
	l.Values = slices.Clone(l.Values)
	change(&l)
	m.sink.SetLine(id, l)
}

func (m inMaps) forget(_ testing.TB, ids ...int64) {
	for _, id := range ids {
		m.sink.DeleteEntry(id)
	}
}

func (m inMaps) ledger(t testing.TB, change ledgerChange, ids ...int64) {
	t.Helper()
	for _, id := range ids {
		e, ok := m.sink.Entry(id)
		require.True(t, ok, "line %d", id)
		switch change {
		case otherHash:
			e.HashVersion++
		case adoptedLine:
			e.Outcome, e.DetailHash, e.TrackingHash = inmem.OutcomeAdopted, "", ""
		case markedLine:
			e.Outcome, e.Hash, e.HashVersion, e.DetailHash, e.TrackingHash = inmem.OutcomeFailed, "", 0, "", ""
		case otherSystem:
			e.SysName = otherName
		case laterTS:
			e.SourceTS += 1_000_000
		}
		m.sink.SetEntry(id, e)
	}
}

func (inMaps) began(testing.TB, string, time.Time) {} // its clock is the world's

func (inMaps) age(testing.TB, int) {}

func (m inMaps) rowsOf(testing.TB) map[string]int { return m.runs.Rows() }

func onSQLite(t testing.TB, _ func() time.Time) database {
	t.Helper()
	return sqliteIn(t, filepath.Join(t.TempDir(), "comparison.db"))
}

// sqliteIn makes a database in a file.
func sqliteIn(t testing.TB, file string) database {
	t.Helper()
	s := sqlitetest.Open(t, file, sqlite.Options{})
	_, err := s.Writer().ExecContext(t.Context(), "PRAGMA synchronous = OFF")
	require.NoError(t, err)
	return sqliteOf(s)
}

func sqliteOf(s *sqlite.Store) database {
	tables := statements{
		s.Writer(), "2006-01-02T15:04:05.000Z", "strftime('%%Y-%%m-%%dT%%H:%%M:%%fZ', %[1]s, '-%[2]d days')",
		strings.NewReplacer("sqlwriter.", "sqlwriter_"),
	}
	return database{
		name: "sqlite", sink: s, rows: s.ReconcileRows(sysName), runs: s.RunStore(sysName),
		Findings: s.Findings(sysName), retention: s.Retention(sysName),
		audit: s.AuditLog(sysName), empty: s.MarkEmpty,
		direct: tables, everything: tables.everything,
	}
}

func onServer(t testing.TB, _ func() time.Time) database {
	t.Helper()
	dsn := sqlservertest.NewDatabase(t)
	s, err := sqlserver.Open(t.Context(), dsn, sqlserver.Options{MaxOpen: 10})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	require.NoError(t, s.Migrate(t.Context()))
	db, err := sql.Open("sqlserver", dsn)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, db.Close()) })
	require.NoError(t, sqlserver.CreateSampleSchema(t.Context(), db, sqlserver.Options{}))
	t.Logf("measured on %s", sqlservertest.Version(t, db))
	tables := statements{db, "2006-01-02T15:04:05.000", "DATEADD(day, -%[2]d, %[1]s)", strings.NewReplacer()}
	return database{
		name: "server", sink: s, rows: s.ReconcileRows(sysName), runs: s.RunStore(sysName),
		Findings: s.Findings(sysName), retention: s.Retention(sysName),
		audit: s.AuditLog(sysName), empty: s.MarkEmpty,
		direct: tables, everything: tables.everything,
	}
}

// statements are the tables of a database. Names are those of a server; an engine replaces them.
type statements struct {
	db    *sql.DB
	stamp string
	// earlier is a time so many days before a column.
	earlier string
	tables  *strings.Replacer
}

// everything reads the rows of all tables.
func (s statements) everything(t testing.TB) any {
	t.Helper()
	var all []string
	for _, table := range []string{
		"IVCE_DTL", "IVCE_TRKG_MSTR", "ledger", "audit_log", "run", "batch_item",
		"error_detail", "heartbeat", "finding",
	} {
		if strings.ToLower(table) == table {
			table = "sqlwriter." + table
		}
		all = append(all, s.content(t, s.tables.Replace(table))...)
	}
	return all
}

func (s statements) content(t testing.TB, table string) (all []string) {
	t.Helper()
	rows, err := s.db.QueryContext(t.Context(), "SELECT * FROM "+table)
	require.NoError(t, err)
	defer func() { require.NoError(t, rows.Close()) }()
	columns, err := rows.Columns()
	require.NoError(t, err)
	found, to := make([]any, len(columns)), make([]any, len(columns))
	for i := range found {
		to[i] = &found[i]
	}
	for rows.Next() {
		require.NoError(t, rows.Scan(to...))
		all = append(all, fmt.Sprintf("%s %q", table, found))
	}
	require.NoError(t, rows.Err())
	slices.Sort(all)
	return all
}

// atOnce bounds the ids of one statement.
const atOnce = 500

// exec executes a statement for ids, which it names as %s.
func (s statements) exec(t testing.TB, statement string, ids ...int64) {
	t.Helper()
	for part := range slices.Chunk(ids, atOnce) {
		text := s.tables.Replace(
			fmt.Sprintf(statement, "("+strings.Trim(strings.Join(strings.Fields(fmt.Sprint(part)), ", "), "[]")+")"))
		done, err := s.db.ExecContext(t.Context(), text)
		require.NoError(t, err, text)
		n, err := done.RowsAffected()
		require.NoError(t, err)
		require.Equal(t, len(part), int(n), text)
	}
}

func (s statements) addLines(t testing.TB, ids ...int64) {
	t.Helper()
	for part := range slices.Chunk(ids, atOnce) {
		values := make([]string, len(part))
		for i, id := range part {
			values[i] = fmt.Sprintf("(%d, 'N', 'D')", id)
		}
		_, err := s.db.ExecContext(t.Context(),
			"INSERT INTO IVCE_DTL (IVCE_DTL_UID, IVCE_NUM, ITM_LDSC) VALUES "+strings.Join(values, ", "))
		require.NoError(t, err)
	}
}

func (s statements) remove(t testing.TB, table invoice.Table, ids ...int64) {
	t.Helper()
	s.exec(t, "DELETE FROM "+string(table)+" WHERE IVCE_DTL_UID IN %s", ids...)
}

func (s statements) set(t testing.TB, table invoice.Table, column, value string, ids ...int64) {
	t.Helper()
	s.exec(t, fmt.Sprintf("UPDATE %s SET %s = '%s' WHERE IVCE_DTL_UID IN %%s", table, column, value), ids...)
}

func (s statements) forget(t testing.TB, ids ...int64) {
	t.Helper()
	s.exec(t, "DELETE FROM sqlwriter.ledger WHERE detail_id IN %s", ids...)
}

func (s statements) ledger(t testing.TB, change ledgerChange, ids ...int64) {
	t.Helper()
	s.exec(t, "UPDATE sqlwriter.ledger SET "+map[ledgerChange]string{
		otherHash:   "hash_version = hash_version + 1",
		adoptedLine: "outcome = 'adopted', detail_row_hash = NULL, tracking_row_hash = NULL",
		markedLine:  "outcome = 'failed', content_hash = NULL, hash_version = NULL, detail_row_hash = NULL, tracking_row_hash = NULL",
		otherSystem: "sys_name = '" + otherName + "'",
		laterTS:     "source_ts = source_ts + 1000000",
	}[change]+" WHERE detail_id IN %s", ids...)
}

func (s statements) began(t testing.TB, run string, at time.Time) {
	t.Helper()
	for _, text := range []string{
		"UPDATE sqlwriter.run SET started_at = '%s' WHERE run_id = '%s'",
		"UPDATE sqlwriter.comparison SET begun_at = '%s' WHERE comparison_id = '%s'",
	} {
		_, err := s.db.ExecContext(t.Context(), s.tables.Replace(fmt.Sprintf(text, at.UTC().Format(s.stamp), run)))
		require.NoError(t, err)
	}
}

// times are the columns that a purge goes by, of each of its tables.
func times() map[string]string {
	return map[string]string{
		"run": "ended_at", "batch": "created_at", "batch_item": "updated_at", "worker": "started_at",
		"error_detail": "created_at", "finding": "last_seen", "comparison": "ended_at", "audit_log": "done_at",
	}
}

func (s statements) age(t testing.TB, days int) {
	t.Helper()
	for table, column := range times() {
		text := "UPDATE sqlwriter." + table + " SET " + column + " = " + fmt.Sprintf(s.earlier, column, days)
		_, err := s.db.ExecContext(t.Context(), s.tables.Replace(text))
		require.NoError(t, err, text)
	}
}

func (s statements) rowsOf(t testing.TB) map[string]int {
	t.Helper()
	found := map[string]int{}
	for table := range times() {
		n := 0
		require.NoError(t,
			s.db.QueryRowContext(t.Context(), s.tables.Replace("SELECT COUNT(*) FROM sqlwriter."+table)).Scan(&n))
		found[table] = n
	}
	return found
}
