package sqlite_test

import (
	"context"
	"database/sql"
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"sqlwriter/internal/invoice"
	"sqlwriter/internal/store/sqlite"
	"sqlwriter/test/conformance"
	"sqlwriter/test/sqlitetest"
	"sqlwriter/test/sqltest"
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

// db is a store, and a spy of its database.
type db struct {
	*sqlite.Store
	spy *sqltest.Spy
}

func spying(s *sqlite.Store) db {
	return db{s, &sqltest.Spy{
		Read: s.Reader(), Write: s.Writer(), User: "main.", Ours: "sqlwriter_", UUID: "%s",
		NewUUID: "lower(hex(randomblob(16)))", Time: "2006-01-02T15:04:05.000Z",
		Earlier: "strftime('%%Y-%%m-%%dT%%H:%%M:%%fZ', %[1]s, '-%[2]d seconds')",
	}}
}

func harness(t testing.TB) conformance.SinkHarness { return changedHarness(t, func(*sqlite.Store) {}) }

// changedHarness is the harness of a store that change has modified.
func changedHarness(t testing.TB, change func(*sqlite.Store)) conformance.SinkHarness {
	path := filepath.Join(t.TempDir(), "a b#?%.db")
	s := openStoreWith(t, path, sqlite.Options{BusyTimeout: busyTimeout})
	change(s)
	d := spying(s)
	m := meddle(s)
	sink := &conformance.ReplyLoser{Sink: s} // a file has no network connection to break
	return conformance.SinkHarness{
		Engine: d.version(t),
		Sink:   sink, Rows: s.ReconcileRows,
		Under: func(t testing.TB, m *invoice.Mapping) conformance.Store {
			t.Helper()
			u := openStoreWith(t, path, sqlite.Options{BusyTimeout: busyTimeout, Mapping: m})
			require.NoError(t, u.Migrate(t.Context()))
			return u
		},
		AddLines: d.addLines, Row: d.spy.Row, SetRow: d.spy.SetRow,
		Ledger: d.spy.Ledger, SetLedger: d.spy.SetLedger, Heartbeat: d.spy.Heartbeat,
		SetHeartbeat: d.spy.SetHeartbeat,
		Refuse:       d.refuse, NotNull: d.notNull, Narrow: d.narrow, Constrain: d.constrain,
		Hide: d.hide, ReadOnly: d.readOnly, CountWrites: d.countWrites,
		OddColumns: d.oddColumns,
		Lock: holding[int64](path,
			`UPDATE IVCE_DTL SET ITM_LDSC = 'somebody else''s' WHERE `+sqltest.Key(invoice.Detail)+` = @p1`), LockWait: busyTimeout,
		LockHeartbeat: holding[string](path,
			`UPDATE sqlwriter_heartbeat SET number = number + 100 WHERE sys_name = @p1`),
		Steps: sqlite.WriteSteps(), FailAfter: m.failAfter, During: m.during, LoseReply: sink.LoseReply,
	}
}

// notNull adds the rule as a trigger, because SQLite cannot change a column.
func (d db) notNull(t testing.TB) func() {
	t.Helper()
	d.spy.Exec(t, fmt.Sprintf(
		`CREATE TRIGGER not_null BEFORE UPDATE ON IVCE_DTL WHEN new.%s IS NULL BEGIN SELECT RAISE(ABORT, 'not null'); END`,
		sqltest.Quote(conformance.NotNullColumn().Name)))
	return func() { d.spy.Exec(t, `DROP TRIGGER not_null`) }
}

// narrow adds the rule as a trigger for the same reason.
func (d db) narrow(t testing.TB, to int) func() {
	t.Helper()
	d.spy.Exec(t,
		fmt.Sprintf(
			`CREATE TRIGGER narrow BEFORE UPDATE ON IVCE_DTL WHEN length(new.%s) > %d BEGIN SELECT RAISE(ABORT, 'too long'); END`,
			sqltest.Quote(conformance.NarrowedColumn().Name), to))
	return func() { d.spy.Exec(t, `DROP TRIGGER narrow`) }
}

func (d db) addLines(t testing.TB, lines ...int64) {
	t.Helper()
	tx, err := d.Writer().Begin()
	require.NoError(t, err)
	for _, line := range lines {
		_, err := tx.Exec(
			`INSERT OR IGNORE INTO IVCE_DTL (`+sqltest.Key(invoice.Detail)+`, IVCE_NUM, ITM_LDSC) VALUES (?, 'N', 'D')`, line)
		require.NoError(t, err)
	}
	require.NoError(t, tx.Commit())
}

func (d db) refuse(t testing.TB, value string) {
	t.Helper()
	for i, table := range []invoice.Table{invoice.Detail, invoice.Tracking} {
		names, _ := sqltest.Columns(table)
		for _, when := range []string{"UPDATE", "INSERT"} {
			d.spy.Exec(t, fmt.Sprintf(`CREATE TRIGGER refuse_%d_%s BEFORE %s ON %s WHEN '%s' IN (NEW.%s)
				BEGIN SELECT RAISE(ABORT, 'no such table: refused'); END`, i, when, when, table, value, strings.Join(names, ", NEW.")))
		}
	}
}

func (d db) countWrites(t testing.TB) func(int64) (int, int) {
	t.Helper()
	d.spy.Exec(t, `CREATE TABLE counted (tbl TEXT, line INTEGER)`)
	for _, table := range []invoice.Table{invoice.Detail, invoice.Tracking} {
		for _, when := range []string{"UPDATE", "INSERT"} {
			d.spy.Exec(t, fmt.Sprintf(`CREATE TRIGGER count_%s_%s AFTER %s ON %s
				BEGIN INSERT INTO counted VALUES ('%s', NEW.%s); END`, table, when, when, table, table, sqltest.Key(table)))
		}
	}
	return d.spy.Counted(t)
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
