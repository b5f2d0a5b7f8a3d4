package bench

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	mssql "github.com/microsoft/go-mssqldb"
	"github.com/stretchr/testify/require"

	"sqlwriter/internal/invoice"
	"sqlwriter/internal/sqlserver"
	"sqlwriter/internal/sqlserver/sqlservertest"
)

// rowByDriver and rowByServer are the row at a time, prepared in two ways.
const (
	rowByDriver = "row at a time, prepared by the driver"
	rowByServer = "row at a time, prepared on the server"
)

// newServer is a database on a T-SQL server with our schema and the user's tables, and detail rows made as they are needed.
func newServer(t testing.TB) *engine {
	t.Helper()
	ctx, dsn := context.Background(), sqlservertest.NewDatabase(t)
	store := openStore(t, dsn)
	require.NoError(t, store.Migrate(ctx))
	require.NoError(t, sqlserver.CreateSampleSchema(ctx, store.DB(), sqlserver.Options{}))
	_, err := store.DB().ExecContext(ctx, fmt.Sprintf(`ALTER TABLE dbo.IVCE_DTL ADD CONSTRAINT refuse CHECK (UNSPSC_CD <> N'%s')`, refusedCode))
	require.NoError(t, err)
	e := &engine{
		name: "T-SQL server", version: sqlservertest.Version(t, store.DB()), db: store.DB(), ledger: "sqlwriter.ledger",
		far: []time.Duration{time.Millisecond, 2 * time.Millisecond, 5 * time.Millisecond},
	}
	e.remark = "0 ms is a direct connection; for the other distances a proxy on loopback adds half of it each way." + durability(e.db)
	next, made := int64(firstLine), int64(firstLine)
	e.lines = func(n int) int64 {
		from := next
		next += int64(n)
		for ; made < next; made += linesAtOnce {
			_, err := e.db.ExecContext(ctx, fmt.Sprintf(`WITH n AS (SELECT 0 AS i UNION ALL SELECT i + 1 FROM n WHERE i < 99)
				INSERT INTO dbo.IVCE_DTL (IVCE_DTL_UID, IVCE_NUM, ITM_LDSC)
				SELECT @p1 + a.i + 100 * b.i, N'INV-88041', N'CONN STRN RLF 1/2IN 425' FROM n AS a CROSS JOIN n AS b WHERE b.i < %d`,
				linesAtOnce/100), made)
			require.NoError(t, err)
		}
		return from
	}
	refusal := mergeRefused(t, e, dsn)
	if refusal != "" {
		e.remark += " MERGE as the Azure SQL output binding writes it is not measured: " + refusal + "."
	}
	e.compile = func(name string) compiled { return compile(t, connect(t, dsn), name) }
	e.lane = func(distance time.Duration, direct bool) lane {
		return serverLane(t, dsn, distance, direct, refusal == "")
	}
	return e
}

// linesAtOnce is how many detail rows are made by one statement.
const linesAtOnce = 5000

// openStore opens a database with connections that stay: none is made in the middle of a measurement.
func openStore(t testing.TB, dsn string) *sqlserver.Store {
	t.Helper()
	store, err := sqlserver.Open(context.Background(), dsn, sqlserver.Options{MaxIdleTime: time.Hour, MaxLifetime: time.Hour})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, store.Close()) })
	return store
}

// serverLane connects over a distance; a direct connection has none and counts nothing.
func serverLane(t testing.TB, dsn string, distance time.Duration, direct, merges bool) lane {
	t.Helper()
	l := lane{distance: distance, requests: func() int64 { return 0 }}
	if !direct {
		k := newLink(t, sqlservertest.Address(t, dsn), distance)
		dsn, l.requests = sqlservertest.WithAddress(t, dsn, k.address()), k.requests.Load
	}
	db := connect(t, dsn)
	l.trip = roundTrip(t, db)
	o := newOriginal(func(n int) string { return fmt.Sprintf("@p%d", n) }, argument)
	l.ways = append([]way{o.prepared(t, db, rowByDriver), o.handles(t, connect(t, dsn), rowByServer)}, bareWays(t, db)...)
	if merges {
		l.ways = append(l.ways, mergeWay(t, db))
	}
	l.ways = append(l.ways, waysOver(openStore(t, dsn))...)
	return l
}

// compile sends a text that is not run: the one of a bare form, or ours when the name is empty. A server that keeps plans
// knows it after the first time; one that does not reads all of it at every request.
func compile(t testing.TB, db *sql.DB, name string) compiled {
	t.Helper()
	text := ""
	if name == "" {
		golden, err := os.ReadFile("../sqlserver/testdata/write.sql")
		require.NoError(t, err)
		_, steps, _ := strings.Cut(string(golden), "\n") // the first line declares the parameters
		text = withoutComments(steps)
	} else {
		text = newStatements().text(t, "tsql", name)
	}
	unrun := "IF @rewrite = 2\nBEGIN\n" + text + "\nEND;"
	var took []float64
	for range 15 {
		begin := time.Now()
		_, err := db.ExecContext(context.Background(), unrun, sql.Named("request", mssql.NVarCharMax("[]")), sql.Named("rewrite", int64(0)))
		require.NoError(t, err)
		took = append(took, float64(time.Since(begin)))
	}
	return compiled{len(text), time.Duration(median(took)) - roundTrip(t, db)}
}

// connect opens one connection for a way that we are compared with, with packets as large as those of our own.
func connect(t testing.TB, dsn string) *sql.DB {
	t.Helper()
	u, err := url.Parse(dsn)
	require.NoError(t, err)
	q := u.Query()
	q.Set("packet size", "16383")
	u.RawQuery = q.Encode()
	db, err := sql.Open("sqlserver", u.String())
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

// argument is a value as the driver takes it. Texts are nvarchar(max): the declaration of a parameter is then the same
// for every value, and the server keeps one plan.
func argument(c invoice.Column, v invoice.Value) any {
	if c.Kind == invoice.Integer {
		n, err := strconv.ParseInt(v.Text, 10, 64)
		return sql.NullInt64{Int64: n, Valid: err == nil}
	}
	if v.Null {
		return nil
	}
	return mssql.NVarCharMax(strings.TrimSuffix(v.Text, "Z"))
}

// asMember is a value in a request's JSON.
func asMember(c invoice.Column, v invoice.Value) any {
	switch {
	case v.Null:
		return nil
	case c.Kind == invoice.Time:
		return strings.TrimSuffix(v.Text, "Z")
	}
	return v.Text
}

// handles is original with statements that the server keeps for the connection, which is held so that nothing resets it.
func (o original) handles(t testing.TB, pool *sql.DB, name string) way {
	t.Helper()
	db, err := pool.Conn(context.Background())
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, db.Close()) })
	var handles [3]int64
	var calls [3]string
	for i, places := range [][]int{o.detail, o.tracking, o.tracking} {
		declared, columns, call := []string{"@p1 bigint"}, invoice.Columns(), "EXEC sp_execute @p1, @p2"
		for n, p := range places {
			declared = append(declared, fmt.Sprintf("@p%d %s", n+2, typeOf(columns[p])))
			call += fmt.Sprintf(", @p%d", n+3)
		}
		calls[i] = call
		require.NoError(t, db.QueryRowContext(context.Background(), "DECLARE @h int; EXEC sp_prepare @h OUTPUT, @p1, @p2; SELECT @h",
			strings.Join(declared, ", "), o.texts[i]).Scan(&handles[i]))
	}
	return way{rowByRow, name, 1, []kind{first, repeat}, func(ctx context.Context, docs []doc, _ kind) error {
		return chunks(docs, 1, func(docs []doc) (err error) {
			tx, err := db.BeginTx(ctx, nil)
			if err != nil {
				return err
			}
			defer func() { _ = tx.Rollback() }() // after a commit it does nothing
			if err := o.document(docs[0].item, func(statement int, args []any) (int64, error) {
				r, err := tx.ExecContext(ctx, calls[statement], append([]any{handles[statement]}, args...)...)
				if err != nil {
					return 0, err
				}
				return r.RowsAffected()
			}); err != nil {
				return err
			}
			return tx.Commit()
		})
	}}
}

// bare is the set-based write with nothing around it, in several forms: one request, one JSON parameter.
func bareWays(t testing.TB, db *sql.DB) []way {
	t.Helper()
	st := newStatements()
	var ways []way
	for _, b := range []struct {
		name    string
		request func(docs []doc, m member) ([]byte, error)
	}{{"staged", st.nested}, {"into", st.nested}, {"flat", st.flat}, {"thrice", st.flat}} {
		text := st.text(t, "tsql", b.name)
		ways = append(ways, way{bare, bareName + ", " + b.name, 100, []kind{first, repeat}, func(ctx context.Context, docs []doc, _ kind) error {
			request, err := b.request(docs, asMember)
			if err != nil {
				return err
			}
			_, err = db.ExecContext(ctx, text, sql.Named("request", mssql.NVarCharMax(request)))
			return err
		}})
	}
	return ways
}

// mergeWay is the output binding: for each table a transaction with one MERGE. It also asks the server for its properties
// before each call, and for the tables' columns now and then; that is left out.
func mergeWay(t testing.TB, db *sql.DB) way {
	t.Helper()
	st, texts := newStatements(), map[invoice.Table]string{}
	for _, table := range []invoice.Table{invoice.Detail, invoice.Tracking} {
		texts[table] = st.of(table).text(t, "tsql", "merge")
	}
	return way{merge, mergeName, 100, []kind{first, repeat}, func(ctx context.Context, docs []doc, _ kind) error {
		for _, table := range []invoice.Table{invoice.Detail, invoice.Tracking} {
			request, err := st.objects(docs, table, asMember)
			if err != nil {
				return err
			}
			tx, err := db.BeginTx(ctx, nil)
			if err != nil {
				return err
			}
			if _, err := tx.ExecContext(ctx, texts[table], sql.Named("rowData", mssql.NVarCharMax(request))); err != nil {
				return errors.Join(err, tx.Rollback())
			}
			if err := tx.Commit(); err != nil {
				return err
			}
		}
		return nil
	}}
}

// mergeRefused says in words why an engine cannot be measured with MERGE; empty when it can. Microsoft's own must.
func mergeRefused(t testing.TB, e *engine, dsn string) string {
	t.Helper()
	err := mergeWay(t, connect(t, dsn)).write(context.Background(), makeDocs(t, e.lines(linesOf), 1, first.turn()), first)
	var refused mssql.Error
	if errors.As(err, &refused) && !sqlservertest.IsReal(e.version) {
		return fmt.Sprintf("this engine refuses it with error %d, %q", refused.Number, refused.Message)
	}
	require.NoError(t, err)
	return ""
}
