package sqlserver_test

import (
	"context"
	"database/sql"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"sqlwriter/internal/invoice"
	"sqlwriter/internal/store/sqlserver"
	"sqlwriter/test/conformance"
	"sqlwriter/test/mapping"
	"sqlwriter/test/sqlservertest"
	"sqlwriter/test/sqltest"
)

func TestSink(t *testing.T) {
	d := newDatabase(t)
	conformance.TestSink(t, d.harness)
}

func TestBisect(t *testing.T) {
	d := newDatabase(t)
	d.deviations = bisectDeviations()
	conformance.TestBisect(t, d.harness)
}

func TestRows(t *testing.T) {
	d := newDatabase(t)
	conformance.TestRows(t, d.harness)
}

// lockTimeout is how long the tests' requests wait for a lock.
const lockTimeout = 500 * time.Millisecond

// database is one test's database on the server.
type database struct {
	dsn     string
	version string
	store   *sqlserver.Store
	// deviations are the engine's deviations in the running suite.
	deviations map[string]conformance.Deviation
	// db is another session's connection pool, and spy reads and changes the database there.
	db  *sql.DB
	spy *sqltest.Spy
}

// newDatabase makes a database with our schema.
func newDatabase(t testing.TB) *database {
	t.Helper()
	d := &database{dsn: sqlservertest.NewDatabase(t), deviations: sinkDeviations()}
	d.store = openStore(t, d.dsn)
	require.NoError(t, d.store.Migrate(context.Background()))
	var err error
	d.db, err = sql.Open("sqlserver", d.dsn)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, d.db.Close()) })
	d.version = sqlservertest.Version(t, d.db)
	d.spy = &sqltest.Spy{
		Read: d.db, Write: d.db, User: "dbo.", Ours: "sqlwriter.", UUID: "CONVERT(varchar(36), %s)", NewUUID: "NEWID()",
		Earlier: "DATEADD(SECOND, -%[2]d, %[1]s)", Time: "2006-01-02T15:04:05.000",
	}
	return d
}

func openStore(t testing.TB, dsn string) *sqlserver.Store {
	t.Helper()
	return openUnder(t, dsn, mapping.InUse())
}

func openUnder(t testing.TB, dsn string, m *invoice.Mapping) *sqlserver.Store {
	t.Helper()
	s, err := sqlserver.Open(context.Background(), dsn,
		sqlserver.Options{Mapping: m, LockTimeout: lockTimeout, MaxOpen: 30})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	return s
}

// harness empties the database for a case.
func (d *database) harness(t testing.TB) conformance.SinkHarness {
	t.Helper()
	d.spy.Exec(t, `DROP TABLE IF EXISTS dbo.IVCE_DTL, dbo.IVCE_TRKG_MSTR, dbo.counted, dbo.allowed`)
	d.spy.Exec(t, `DELETE FROM sqlwriter.ledger`)
	d.spy.Exec(t, `DELETE FROM sqlwriter.heartbeat`)
	require.NoError(t, sqlserver.CreateSampleSchema(context.Background(), d.db,
		sqlserver.Options{Mapping: mapping.InUse()}))
	for _, c := range mapping.InUse().Columns() {
		if c.Local { // what people have for it
			d.spy.Exec(t, "ALTER TABLE dbo."+string(c.Table)+" ALTER COLUMN "+sqltest.Quote(c.Name)+" datetime")
		}
	}
	require.NoError(t, d.store.KnowColumnsAnew(context.Background())) // a case may have changed them
	h := &spies{database: d, sink: &hooked{d: d, store: d.store}}
	real := sqlservertest.IsReal(d.version)
	return conformance.SinkHarness{
		Engine: d.version, RealServer: real, Strict: true, Deviations: d.deviations,
		Sink: h.sink, Rows: d.store.ReconcileRows,
		Under: func(t testing.TB, m *invoice.Mapping) conformance.Store {
			t.Helper()
			s := openUnder(t, d.dsn, m)
			require.NoError(t, s.Migrate(t.Context()))
			return s
		},
		AddLines: h.addLines, Row: h.spy.Row, SetRow: h.spy.SetRow,
		Ledger: h.spy.Ledger, SetLedger: h.spy.SetLedger,
		Heartbeat: h.spy.Heartbeat, SetHeartbeat: h.spy.SetHeartbeat, LockHeartbeat: h.lockHeartbeat,
		Refuse: h.refuse, NotNull: h.notNull, Narrow: h.narrow, Constrain: h.constrain, Hide: h.hide,
		ReadOnly: h.readOnly, CountWrites: h.countWrites,
		Lock: h.lock, LockWait: lockTimeout, RowLocks: true,
		OddColumns: h.oddColumns,
		BetweenReadAndWrite: func(t testing.TB, f func()) {
			h.sink.during(t, "load", func(conformance.Inside) { f() })
		},
		Steps: stepsBeforeCommit(), FailAfter: h.sink.failAfter, During: h.sink.during,
		LoseReply: h.sink.loseReply,
	}
}

// stepsBeforeCommit are the steps of a write that a rollback still undoes.
func stepsBeforeCommit() []string {
	steps := sqlserver.ApplySteps()
	for i, s := range steps {
		if s == "commit" {
			return steps[:i]
		}
	}
	return nil
}
