package sqlite_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"sqlwriter/internal/invoice"
	"sqlwriter/internal/store/shared"
	"sqlwriter/internal/store/sqlite"
	"sqlwriter/test/conformance"
	"sqlwriter/test/sqlitetest"
)

func TestSink(t *testing.T) {
	t.Parallel()
	conformance.TestSink(t, harness)
}

func TestBisect(t *testing.T) {
	t.Parallel()
	conformance.TestBisect(t, harness)
}

func TestRows(t *testing.T) {
	t.Parallel()
	conformance.TestRows(t, harness)
}

// newStore opens a new file with our tables and samples of the user's.
func newStore(t testing.TB) *sqlite.Store {
	t.Helper()
	return openStore(t, filepath.Join(t.TempDir(), "a b#?%.db"))
}

func openStore(t testing.TB, path string) *sqlite.Store {
	t.Helper()
	return openStoreWith(t, path, sqlite.Options{})
}

func openStoreWith(t testing.TB, path string, o sqlite.Options) *sqlite.Store {
	t.Helper()
	return sqlitetest.Open(t, path, o)
}

// db is a store with test helpers.
type db struct{ *sqlite.Store }

func harness(t testing.TB) conformance.SinkHarness { return changedHarness(t, func(*sqlite.Store) {}) }

// changedHarness is the harness of a store that change has modified.
func changedHarness(t testing.TB, change func(*sqlite.Store)) conformance.SinkHarness {
	path := filepath.Join(t.TempDir(), "a b#?%.db")
	s := openStoreWith(t, path, sqlite.Options{BusyTimeout: busyTimeout})
	change(s)
	d := db{s}
	m := meddle(s)
	sink := &conformance.ReplyLoser{Sink: s} // a file has no network connection to break
	return conformance.SinkHarness{
		Engine: d.version(t),
		Sink:   sink, Rows: s.ReconcileRows, AddLines: d.addLines, Row: d.row, SetRow: d.setRow, Ledger: d.ledger,
		SetLedger: d.setLedger, Heartbeat: d.heartbeat,
		SetHeartbeat: d.setHeartbeat, Refuse: d.refuse, NotNull: d.notNull, Narrow: d.narrow, Constrain: d.constrain,
		Hide: d.hide, ReadOnly: d.readOnly, CountWrites: d.countWrites,
		OddColumns: d.oddColumns,
		Lock:       locker(path), LockWait: busyTimeout, LockHeartbeat: heartbeatLocker(path),
		Steps: sqlite.WriteSteps(), FailAfter: m.failAfter, During: m.during, LoseReply: sink.LoseReply,
	}
}

func (d db) exec(t testing.TB, query string, args ...any) {
	t.Helper()
	_, err := d.Writer().Exec(query, args...)
	require.NoError(t, err, query)
}

// notNull adds the rule as a trigger, because SQLite cannot change a column.
func (d db) notNull(t testing.TB) func() {
	t.Helper()
	d.exec(t,
		`CREATE TRIGGER not_null BEFORE UPDATE ON IVCE_DTL WHEN new.UPC_CD IS NULL BEGIN SELECT RAISE(ABORT, 'UPC_CD'); END`)
	return func() { d.exec(t, `DROP TRIGGER not_null`) }
}

// narrow adds the rule as a trigger for the same reason.
func (d db) narrow(t testing.TB, to int) func() {
	t.Helper()
	d.exec(t,
		fmt.Sprintf(
			`CREATE TRIGGER narrow BEFORE UPDATE ON IVCE_DTL WHEN length(new.%s) > %d BEGIN SELECT RAISE(ABORT, 'too long'); END`,
			conformance.NarrowedColumn, to))
	return func() { d.exec(t, `DROP TRIGGER narrow`) }
}

func (d db) addLines(t testing.TB, lines ...int64) {
	t.Helper()
	tx, err := d.Writer().Begin()
	require.NoError(t, err)
	for _, line := range lines {
		_, err := tx.Exec(
			`INSERT OR IGNORE INTO IVCE_DTL (IVCE_DTL_UID, IVCE_NUM, ITM_LDSC) VALUES (?, 'N', 'D')`, line)
		require.NoError(t, err)
	}
	require.NoError(t, tx.Commit())
}

// columnsOf lists a table's columns and their places in the column table.
func columnsOf(table invoice.Table) (names []string, places []int) {
	for i, c := range invoice.Columns() {
		if c.Table == table {
			names, places = append(names, c.Name), append(places, i)
		}
	}
	return names, places
}

func (d db) row(t testing.TB, line int64) conformance.SinkRow {
	t.Helper()
	r := conformance.SinkRow{Values: make([]invoice.Value, len(invoice.Columns()))}
	r.Detail = d.readTable(t, invoice.Detail, line, r.Values)
	r.Tracking = d.readTable(t, invoice.Tracking, line, r.Values)
	if r.Detail {
		var num, desc string
		require.NoError(t,
			d.Reader().QueryRow(`SELECT IVCE_NUM, ITM_LDSC FROM IVCE_DTL WHERE IVCE_DTL_UID = ?`,
				line).Scan(&num, &desc))
		require.Equal(t, "N D", num+" "+desc, "the user's other columns stay as they are")
	}
	return r
}

func (d db) readTable(t testing.TB, table invoice.Table, line int64, into []invoice.Value) bool {
	t.Helper()
	names, places := columnsOf(table)
	texts := make([]sql.NullString, len(names))
	to := make([]any, len(names))
	for i := range texts {
		to[i] = &texts[i]
	}
	err := d.Reader().QueryRow(
		fmt.Sprintf(`SELECT %s FROM %s WHERE IVCE_DTL_UID = ?`, strings.Join(names, ", "), table), line).Scan(to...)
	for i, p := range places {
		into[p] = invoice.Value{Null: !texts[i].Valid, Text: texts[i].String}
	}
	if errors.Is(err, sql.ErrNoRows) {
		return false
	}
	require.NoError(t, err)
	return true
}

func (d db) setRow(t testing.TB, line int64, r conformance.SinkRow) {
	t.Helper()
	require.True(t, r.Detail)
	d.exec(t, `DELETE FROM IVCE_TRKG_MSTR WHERE IVCE_DTL_UID = ?`, line)
	if r.Tracking {
		d.exec(t, `INSERT INTO IVCE_TRKG_MSTR (IVCE_DTL_UID) VALUES (?)`, line)
	}
	for i, c := range invoice.Columns() {
		v := any(r.Values[i].Text)
		if r.Values[i].Null {
			v = nil
		}
		d.exec(t, fmt.Sprintf(`UPDATE %s SET %s = ? WHERE IVCE_DTL_UID = ?`, c.Table, c.Name), v, line)
	}
}

func (d db) ledger(t testing.TB, line int64) (conformance.LedgerRow, bool) {
	t.Helper()
	var l conformance.LedgerRow
	var key, hash, detail, tracking shared.Hash
	var version sql.NullInt64
	var writeID, at string
	err := d.Reader().QueryRow(
		`SELECT version_us, document_key, document_id, source_ts, content_hash, hash_version, sys_name,
		detail_row_hash, tracking_row_hash, outcome, write_id, applied_at FROM sqlwriter_ledger WHERE detail_id = ?`, line).Scan(&l.Version.US, &key,
		&l.DocumentID, &l.SourceTS, &hash, &version, &l.SysName, &detail, &tracking, &l.Outcome, &writeID, &at)
	if errors.Is(err, sql.ErrNoRows) {
		return l, false
	}
	require.NoError(t, err)
	l.Version.Key, l.Hash, l.DetailHash, l.TrackingHash, l.HashVersion = string(key), string(hash), string(detail),
		string(tracking), int(version.Int64)
	if l.Outcome != "adopted" {
		require.Regexp(t, `^[0-9a-f]{32}$`, writeID)
		require.Regexp(t, `^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$`, at, "by the database's clock")
	}
	return l, true
}

func (d db) setLedger(t testing.TB, line int64, l conformance.LedgerRow) {
	t.Helper()
	d.exec(t, `INSERT OR REPLACE INTO sqlwriter_ledger (detail_id, version_us, document_key, document_id, source_ts,
		content_hash, hash_version, detail_row_hash, tracking_row_hash, sys_name, outcome, write_id, applied_at)
		VALUES (?1, ?2, unhex(?3), ?4, ?5, unhex(nullif(?6, '')), iif(?6 = '', NULL, ?7), unhex(nullif(?8, '')), unhex(nullif(?9, '')), ?10, ?11, lower(hex(randomblob(16))), strftime('%Y-%m-%dT%H:%M:%fZ', 'now', '-' || ?12 || ' days'))`,
		line, l.Version.US, l.Version.Key, l.DocumentID, l.SourceTS, l.Hash, l.HashVersion, l.DetailHash,
		l.TrackingHash, l.SysName, l.Outcome, l.DaysAgo)
}

func (d db) refuse(t testing.TB, value string) {
	t.Helper()
	for i, table := range []invoice.Table{invoice.Detail, invoice.Tracking} {
		names, _ := columnsOf(table)
		for _, when := range []string{"UPDATE", "INSERT"} {
			d.exec(t, fmt.Sprintf(`CREATE TRIGGER refuse_%d_%s BEFORE %s ON %s WHEN '%s' IN (NEW.%s)
				BEGIN SELECT RAISE(ABORT, 'no such table: refused'); END`, i, when, when, table, value, strings.Join(names, ", NEW.")))
		}
	}
}

func (d db) countWrites(t testing.TB) func(int64) (int, int) {
	t.Helper()
	d.exec(t, `CREATE TABLE counted (tbl TEXT, line INTEGER)`)
	for _, table := range []invoice.Table{invoice.Detail, invoice.Tracking} {
		for _, when := range []string{"UPDATE", "INSERT"} {
			d.exec(t, fmt.Sprintf(`CREATE TRIGGER count_%s_%s AFTER %s ON %s
				BEGIN INSERT INTO counted VALUES ('%s', NEW.IVCE_DTL_UID); END`, table, when, when, table, table))
		}
	}
	return func(line int64) (int, int) {
		var n [2]int
		for i, table := range []invoice.Table{invoice.Detail, invoice.Tracking} {
			require.NoError(t,
				d.Reader().QueryRow(`SELECT count(*) FROM counted WHERE tbl = ? AND line = ?`, table, line).Scan(&n[i]))
		}
		return n[0], n[1]
	}
}

// once runs f after the next run of a statement.
func (d db) once(step string, f func(tx *sql.Tx) error) {
	var first sync.Once
	d.SetAfterStatement(func(_ context.Context, tx *sql.Tx, name string) (err error) {
		if name == step {
			first.Do(func() { err = f(tx) })
		}
		return err
	})
}
