package sqlite_test

import (
	"context"
	"database/sql"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"sqlwriter/internal/fault"
	"sqlwriter/internal/invoice"
	"sqlwriter/internal/store/sqlite"
	"sqlwriter/test/conformance"
	"sqlwriter/test/mapping"
	"sqlwriter/test/sqltest"
)

// busyTimeout is how long a request of the suites waits for the write lock.
const busyTimeout = 400 * time.Millisecond

func (d db) version(t testing.TB) string {
	t.Helper()
	var v string
	require.NoError(t, d.Reader().QueryRow(`SELECT sqlite_version()`).Scan(&v))
	return "SQLite " + v + " (modernc.org/sqlite)"
}

// meddler runs functions between the statements of a store's requests, also of several at once.
type meddler struct {
	mu   sync.Mutex
	step string
	f    func(tx *sql.Tx) error
}

func meddle(s *sqlite.Store) *meddler {
	m := &meddler{}
	s.SetAfterStatement(func(_ context.Context, tx *sql.Tx, name string) error {
		if f := m.take(name); f != nil {
			return f(tx)
		}
		return nil
	})
	return m
}

// next runs f once after the next run of a statement.
func (m *meddler) next(step string, f func(tx *sql.Tx) error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.step, m.f = step, f
}

func (m *meddler) take(step string) func(tx *sql.Tx) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.step != step {
		return nil
	}
	f := m.f
	m.step, m.f = "", nil
	return f
}

func (m *meddler) failAfter(_ testing.TB, step string) {
	m.next(step, func(*sql.Tx) error { return fault.New(fault.Infrastructure, "test", "injected", "after %s", step) })
}

func (m *meddler) during(_ testing.TB, step string, f func(conformance.Inside)) {
	m.next(step, func(tx *sql.Tx) error {
		f(conformance.Inside{
			Sink: sqlite.InTx{Tx: tx},
			DropDetail: func(line int64) error {
				_, err := tx.Exec(`DELETE FROM IVCE_DTL WHERE `+sqltest.Key(invoice.Detail)+` = ?`, line)
				return err
			},
			AddTracking: func(line int64) error {
				_, err := tx.Exec(`INSERT INTO IVCE_TRKG_MSTR (`+sqltest.Key(invoice.Tracking)+`) VALUES (?)`, line)
				return err
			},
		})
		return nil
	})
}

// holding opens the file as another process would. It runs a statement there in a transaction that stays open until
// unlock.
func holding[T any](path, statement string) func(testing.TB, T) (unlock func()) {
	return func(t testing.TB, arg T) func() {
		t.Helper()
		return sqltest.Holding(t, openStore(t, path).Writer(), statement, arg)
	}
}

// constrain adds a rule to a table by a trigger, an index, or a rebuilt table.
func (d db) constrain(t testing.TB, table invoice.Table, r conformance.Rule) {
	t.Helper()
	column := sqltest.Quote(conformance.RuledColumn(table).Name)
	switch r {
	case conformance.TriggerThrows:
		d.raise(t, table, "ABORT")
	case conformance.TriggerRollsBack:
		d.raise(t, table, "ROLLBACK")
	case conformance.CheckRefuses:
		d.rebuild(t, table, fmt.Sprintf(`CHECK (%s <> '%s')`, column, conformance.RefusedCode), "")
	case conformance.ForeignKey:
		d.spy.Exec(t, `CREATE TABLE IF NOT EXISTS codes (code TEXT PRIMARY KEY)`)
		d.spy.Exec(t, `INSERT OR IGNORE INTO codes VALUES (@p1)`, conformance.AllowedCode)
		d.rebuild(t, table, fmt.Sprintf(`FOREIGN KEY (%s) REFERENCES codes (code)`, column), "")
	case conformance.Unique:
		d.spy.Exec(t, fmt.Sprintf(`CREATE UNIQUE INDEX once ON %s (%s)`, table, column))
	case conformance.UnwrittenNotNull:
		d.rebuild(t, table, `theirs TEXT NOT NULL`, `, 'theirs'`)
	default:
		require.Fail(t, "no such rule", r)
	}
}

func (d db) raise(t testing.TB, table invoice.Table, how string) {
	t.Helper()
	for _, when := range []string{"UPDATE", "INSERT"} {
		d.spy.Exec(t, fmt.Sprintf(`CREATE TRIGGER rule_%[1]s_%[2]s AFTER %[2]s ON %[1]s WHEN NEW.%[3]s = '%[4]s'
			BEGIN SELECT RAISE(%[5]s, 'not this one'); END`, table, when, sqltest.Quote(conformance.RuledColumn(table).Name),
			conformance.RefusedCode, how))
	}
}

// rebuild makes a table with one more clause and copies its rows. SQLite cannot add a constraint, or a column without
// a default, to an existing table.
func (d db) rebuild(t testing.TB, table invoice.Table, clause, values string) {
	t.Helper()
	var text string
	require.NoError(t,
		d.Reader().QueryRow(`SELECT sql FROM sqlite_master WHERE type = 'table' AND name = ?`, table).Scan(&text))
	d.spy.Exec(t, fmt.Sprintf(`ALTER TABLE %[1]s RENAME TO %[1]s_old`, table))
	d.spy.Exec(t, strings.TrimSuffix(strings.TrimSpace(text), ")")+", "+clause+")")
	d.spy.Exec(t, fmt.Sprintf(`INSERT INTO %[1]s SELECT *%[2]s FROM %[1]s_old`, table, values))
	d.spy.Exec(t, fmt.Sprintf(`DROP TABLE %s_old`, table))
}

// hide renames a table or a column until restore.
func (d db) hide(t testing.TB, table invoice.Table, column string) func() {
	t.Helper()
	if table == conformance.LedgerTable {
		table = "sqlwriter_ledger"
	}
	change := []string{
		fmt.Sprintf(`ALTER TABLE %[1]s RENAME TO %[1]s_gone`, table),
		fmt.Sprintf(`ALTER TABLE %[1]s_gone RENAME TO %[1]s`, table),
	}
	if column != "" {
		change = []string{
			fmt.Sprintf(`ALTER TABLE %s RENAME COLUMN %s TO gone`, table, sqltest.Quote(column)),
			fmt.Sprintf(`ALTER TABLE %s RENAME COLUMN gone TO %s`, table, sqltest.Quote(column)),
		}
	}
	d.spy.Exec(t, change[0])
	return func() { d.spy.Exec(t, change[1]) }
}

// oddColumns gives the user's tables columns with the affinity of a number, which store "0.9500" as 0.95.
func (d db) oddColumns(t testing.TB) (edits []func(line int64)) {
	t.Helper()
	kinds := map[invoice.Kind]string{
		invoice.Text: "CHAR(9)", invoice.Flag: "CHAR(1)", invoice.Integer: "NUMERIC", invoice.Decimal: "DECIMAL(5, 4)",
		invoice.Time: "DATETIME",
	}
	for _, c := range mapping.InUse().Columns() {
		d.spy.Exec(t, fmt.Sprintf(`ALTER TABLE %s DROP COLUMN %s`, c.Table, sqltest.Quote(c.Name)))
		d.spy.Exec(t, fmt.Sprintf(`ALTER TABLE %s ADD COLUMN %s %s`, c.Table, sqltest.Quote(c.Name), kinds[c.Kind]))
	}
	for _, change := range []struct {
		table      invoice.Table
		name, form string
	}{
		{invoice.Detail, "CLN_MFR_AI_NM", "upper(%s)"},
		{invoice.Detail, "CLN_MFR_AI_NM", "%s || ' '"},
		{invoice.Detail, "MFR_CNFDC_SCR", "%s / 2"},
		{invoice.Tracking, "PRCS_STRT_TS", "substr(%s, 1, 10)"},
	} {
		column := sqltest.Column(change.table, change.name)
		edits = append(edits, func(line int64) {
			d.spy.Exec(t, fmt.Sprintf("UPDATE %s SET %s = "+change.form+" WHERE %s = @p1", change.table, column, column,
				sqltest.Key(change.table)), line)
		})
	}
	return edits
}
