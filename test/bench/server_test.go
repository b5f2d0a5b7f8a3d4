package bench

import (
	"context"
	"database/sql"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	mssql "github.com/microsoft/go-mssqldb"
	"github.com/stretchr/testify/require"

	"sqlwriter/internal/invoice"
	"sqlwriter/internal/store/sqlserver"
	"sqlwriter/test/sqlservertest"
)

// newServer is a database on a T-SQL server with our schema, the user's tables and the bare procedure.
func newServer(t testing.TB) *engine {
	t.Helper()
	ctx, dsn := context.Background(), sqlservertest.NewDatabase(t)
	store := openStore(t, dsn, false)
	require.NoError(t, store.Migrate(ctx))
	require.NoError(t, sqlserver.CreateSampleSchema(ctx, store.DB(), sqlserver.Options{}))
	for _, statement := range []string{
		"ALTER TABLE dbo.IVCE_DTL ADD CONSTRAINT refuse CHECK (UNSPSC_CD <> N'" + refusedCode + "')",
		text(t, "tsql/bare_procedure.sql"),
	} {
		_, err := store.DB().ExecContext(ctx, statement)
		require.NoError(t, err)
	}
	version := sqlservertest.Version(t, store.DB())
	e := &engine{
		name: shortName(version), dsn: dsn, db: store.DB(), ledger: "sqlwriter.ledger",
		distances: []time.Duration{0, 2 * time.Millisecond},
		detailRows: `WITH n AS (SELECT @p1 AS i UNION ALL SELECT i + 1 FROM n WHERE i + 1 < @p2)
			INSERT INTO dbo.IVCE_DTL (IVCE_DTL_UID, IVCE_NUM, ITM_LDSC)
			SELECT i, N'INV-88041', N'CONN STRN RLF 1/2IN 425' FROM n
			OPTION (MAXRECURSION 0)`,
	}
	e.remark = version + "." + durability(e.db) +
		"\n0 ms is a direct connection; for 2 ms a proxy on loopback adds half of it each way. (b) is a procedure."
	e.lane = func(distance time.Duration, direct bool) lane {
		l := lane{distance: distance, requests: &atomic.Int64{}}
		dsn := dsn
		if !direct {
			dsn = sqlservertest.WithAddress(t, dsn, newLink(t, sqlservertest.Address(t, dsn), distance, l.requests))
		}
		db := connect(t, dsn)
		l.trip = roundTrip(t, db)
		l.ways = []way{serverRow(t, connection(t, connect(t, dsn))), bareWay(db)}
		l.ways = append(l.ways, oursWays(openStore(t, dsn, false), 4, func(int) {})...)
		return l
	}
	return e
}

// shortName is what a server calls itself at the front of its version, or the Babelfish release behind it.
func shortName(version string) string {
	if name := regexp.MustCompile(`Babelfish \d[\d.]*`).FindString(version); name != "" {
		return name
	}
	words := strings.Fields(version)
	return strings.Join(words[:min(4, len(words))], " ")
}

// durability says what a commit waits for on a server made on PostgreSQL; others do not know the question.
func durability(db *sql.DB) string {
	var commit, disk string
	err := db.QueryRowContext(context.Background(),
		"SELECT current_setting('synchronous_commit'), current_setting('fsync')").Scan(&commit, &disk)
	if err != nil {
		return ""
	}
	return fmt.Sprintf(" Its commits ran with synchronous_commit=%s and fsync=%s.", commit, disk)
}

// openStore opens a database with connections that stay: none is made in the middle of a measurement.
func openStore(t testing.TB, dsn string, oneWriter bool) *sqlserver.Store {
	t.Helper()
	store, err := sqlserver.Open(context.Background(), dsn,
		sqlserver.Options{MaxIdleTime: time.Hour, MaxLifetime: time.Hour, OneWriter: oneWriter})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, store.Close()) })
	return store
}

// connect opens one connection for a way that we are compared with, with packets as large as those of our own.
func connect(t testing.TB, dsn string) *sql.DB {
	t.Helper()
	db, err := sql.Open("sqlserver", sqlservertest.WithParameters(t, dsn, map[string]string{"packet size": "16383"}))
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, db.Close()) })
	db.SetMaxOpenConns(1)
	return db
}

// roundTrip measures the smallest request.
func roundTrip(t testing.TB, db *sql.DB) time.Duration {
	t.Helper()
	var trips []float64
	for range 30 {
		begin := time.Now()
		_, err := db.ExecContext(context.Background(), "SET NOCOUNT ON")
		require.NoError(t, err)
		trips = append(trips, float64(time.Since(begin)))
	}
	return time.Duration(median(trips))
}

// columnType is the type of the user's column.
func columnType(c invoice.Column) string {
	switch c.Kind {
	case invoice.Integer:
		return "bigint"
	case invoice.Decimal:
		return fmt.Sprintf("decimal(%d, %d)", c.Precision, c.Scale)
	case invoice.Time:
		return "datetime2(6)"
	case invoice.Text, invoice.Flag:
	}
	return fmt.Sprintf("nvarchar(%d)", c.Max)
}

// serverRow is (a) with statements that the server keeps for the connection.
func serverRow(t testing.TB, db *sql.Conn) way {
	t.Helper()
	return newOriginal("@p").way(t, db, func(c invoice.Column, v invoice.Value) any {
		if c.Kind == invoice.Integer {
			n, err := strconv.ParseInt(v.Text, 10, 64)
			return sql.NullInt64{Int64: n, Valid: err == nil}
		}
		return asMember(c, v)
	})
}

// asMember is a value in a request's JSON.
func asMember(c invoice.Column, v invoice.Value) any {
	switch {
	case v.Null:
		return nil
	case c.Kind == invoice.Time:
		return strings.TrimSuffix(v.Text, "Z") // datetime2 has no zone
	}
	return v.Text
}

// bareWay is (b): a procedure with one parameter.
func bareWay(db *sql.DB) way {
	request := bareRequest(asMember)
	return way{name: bare, call: 100, write: func(ctx context.Context, docs []doc) error {
		payload, err := request(docs)
		if err != nil {
			return err
		}
		_, err = db.ExecContext(ctx, "dbo.bench_bare", sql.Named("request", mssql.NVarCharMax(payload)))
		return err
	}}
}
