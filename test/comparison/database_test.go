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
	"sqlwriter/test/mapping"
	"sqlwriter/test/sqlitetest"
	"sqlwriter/test/sqlservertest"
)

// database is one with the user's tables, ours, and direct access for other programs.
type database struct {
	name string
	sink commit.Sink
	rows reconcile.Rows
	// rowsKept are rows of an environment whose lines are kept for some days; those of rows are kept for ever.
	rowsKept func(sysName string, keptDays int) reconcile.Rows
	runs     run.Store
	// retention deletes old rows, and audit has the entries of the audit log.
	retention retention.Store
	audit     ops.AuditLog
	reconcile.Findings
	statements
	// empty says that there is no history to adopt.
	empty func(ctx context.Context, who string) error
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
	all := map[string]func(t testing.TB, now func() time.Time) database{"sqlite": onSQLite}
	if sqlservertest.Named() {
		all["server"] = onServer
	}
	return all
}

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
		name: "sqlite", sink: s, rows: s.ReconcileRows(sysName, 0), rowsKept: s.ReconcileRows,
		runs:     s.RunStore(sysName),
		Findings: s.Findings(sysName), retention: s.Retention(sysName),
		audit: s.AuditLog(sysName), empty: s.MarkEmpty,
		statements: tables,
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
		name: "server", sink: s, rows: s.ReconcileRows(sysName, 0), rowsKept: s.ReconcileRows,
		runs:     s.RunStore(sysName),
		Findings: s.Findings(sysName), retention: s.Retention(sysName),
		audit: s.AuditLog(sysName), empty: s.MarkEmpty,
		statements: tables,
	}
}

// statements are what people and other programs do to the tables of a database. Names are those of a server; an engine
// replaces them.
type statements struct {
	db    *sql.DB
	stamp string
	// earlier is a time so many days before a column.
	earlier string
	tables  *strings.Replacer
}

// everything is the content of all tables, to be compared.
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

// addLines makes detail rows.
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

// remove deletes rows of a table.
func (s statements) remove(t testing.TB, table invoice.Table, ids ...int64) {
	t.Helper()
	s.exec(t, "DELETE FROM "+string(table)+" WHERE IVCE_DTL_UID IN %s", ids...)
}

// set changes a column of rows.
func (s statements) set(t testing.TB, table invoice.Table, column, value string, ids ...int64) {
	t.Helper()
	s.exec(t, fmt.Sprintf("UPDATE %s SET %s = '%s' WHERE IVCE_DTL_UID IN %%s", table, column, value), ids...)
}

// forget deletes rows of the ledger.
func (s statements) forget(t testing.TB, ids ...int64) {
	t.Helper()
	s.exec(t, "DELETE FROM sqlwriter.ledger WHERE detail_id IN %s", ids...)
}

// ledger changes rows of the ledger.
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

// began sets when a run or a comparison began: time passes for the world, and not for a server.
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

// keepAudits is what an administrator does: the audit log is kept for so many days.
func (s statements) keepAudits(t testing.TB, days int) {
	t.Helper()
	text := fmt.Sprintf("INSERT INTO sqlwriter.audit_retention (sys_name, kept_days) VALUES ('%s', %d)", sysName, days)
	_, err := s.db.ExecContext(t.Context(), s.tables.Replace(text))
	require.NoError(t, err)
}

// age lets days pass for what our tables know of runs, findings and the audit log, but for the begin of runs.
func (s statements) age(t testing.TB, days int) {
	t.Helper()
	for table, column := range times() {
		text := "UPDATE sqlwriter." + table + " SET " + column + " = " + fmt.Sprintf(s.earlier, column, days)
		_, err := s.db.ExecContext(t.Context(), s.tables.Replace(text))
		require.NoError(t, err, text)
	}
}

// written makes lines of the ledger as if they had been written so many days ago.
func (s statements) written(t testing.TB, daysAgo int, ids ...int64) {
	t.Helper()
	s.exec(t, "UPDATE sqlwriter.ledger SET applied_at = "+
		strings.ReplaceAll(fmt.Sprintf(s.earlier, "applied_at", daysAgo), "%", "%%")+" WHERE detail_id IN %s", ids...)
}

// ledgerTable is the ledger, by its name on a server.
const ledgerTable = "sqlwriter.ledger"

// copies makes n rows of a table like that of a line, from an id on.
func (s statements) copies(t testing.TB, table string, line, from, n int64) {
	t.Helper()
	key, others := "IVCE_DTL_UID", []string{}
	for _, c := range mapping.InUse().Columns() {
		if string(c.Table) == table {
			others = append(others, c.Name)
		}
	}
	if table == ledgerTable {
		key = "detail_id"
		others = strings.Fields("version_us document_key document_id source_ts content_hash hash_version sys_name " +
			"detail_row_hash tracking_row_hash outcome write_id applied_at")
	}
	insert := func(id string, first, last int64) {
		_, err := s.db.ExecContext(t.Context(), s.tables.Replace(fmt.Sprintf(
			"INSERT INTO %[1]s (%[2]s, %[3]s) SELECT %[4]s, %[3]s FROM %[1]s WHERE %[2]s BETWEEN %[5]d AND %[6]d",
			table, key, strings.Join(others, ", "), id, first, last)))
		require.NoError(t, err)
	}
	insert(fmt.Sprint(from), line, line)
	for made := int64(1); made < n; made *= 2 {
		insert(fmt.Sprintf("%s + %d", key, made), from, from+min(made, n-made)-1)
	}
}

// rowsOf counts the rows of each of these tables.
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
