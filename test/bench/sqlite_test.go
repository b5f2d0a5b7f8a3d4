package bench

import (
	"context"
	"database/sql"
	"fmt"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"sqlwriter/internal/invoice"
	"sqlwriter/internal/store/sqlite"
)

// newSQLite is a database file with our schema and the user's tables.
func newSQLite(t testing.TB) *engine {
	t.Helper()
	ctx, path := context.Background(), filepath.Join(t.TempDir(), "bench.db")
	s := openSQLite(t, path)
	require.NoError(t, s.Migrate(ctx))
	db := s.Writer()
	require.NoError(t, sqlite.CreateSampleSchema(ctx, db))
	// SQLite adds no constraint to a table that is there; a trigger refuses just as well.
	for _, when := range []string{"INSERT", "UPDATE"} {
		_, err := db.ExecContext(ctx, fmt.Sprintf(`CREATE TRIGGER refuse_%[1]s BEFORE %[1]s ON IVCE_DTL
			WHEN NEW.UNSPSC_CD = '%[2]s' BEGIN SELECT RAISE(ABORT, 'refused'); END`, when, refusedCode))
		require.NoError(t, err)
	}
	e := &engine{
		db: db, ledger: "sqlwriter_ledger", distances: []time.Duration{0}, file: true,
		remark: "A file has no distance; a request is a transaction that writes, and its commit waits for the disk (WAL, synchronous=FULL).\n" +
			"(b) is prepared once.",
		detailRows: `WITH RECURSIVE n(i) AS (SELECT ?1 UNION ALL SELECT i + 1 FROM n WHERE i + 1 < ?2)
			INSERT INTO IVCE_DTL (IVCE_DTL_UID, IVCE_NUM, ITM_LDSC) SELECT i, 'INV-88041', 'CONN STRN RLF 1/2IN 425' FROM n`,
	}
	require.NoError(t, db.QueryRowContext(ctx, "SELECT 'SQLite ' || sqlite_version()").Scan(&e.name))
	e.lane = func(time.Duration, bool) lane {
		n := &atomic.Int64{}
		l := lane{requests: n, ways: sqliteRivals(t, connection(t, openSQLite(t, path).Writer()))}
		for i, w := range l.ways {
			l.ways[i].write = func(ctx context.Context, docs []doc) error {
				n.Add(1)
				return w.write(ctx, docs)
			}
		}
		l.ways = append(l.ways, oursWays(s, 1, func(requests int) { n.Add(int64(requests)) })...)
		return l
	}
	return e
}

// openSQLite opens the file with the settings of the product.
func openSQLite(t testing.TB, path string) *sqlite.Store {
	t.Helper()
	s, err := sqlite.Open(context.Background(), path, sqlite.Options{})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	return s
}

// sqliteRivals are (a) and (b), their statements prepared once.
func sqliteRivals(t testing.TB, db *sql.Conn) []way {
	t.Helper()
	asText := func(_ invoice.Column, v invoice.Value) any {
		if v.Null {
			return nil
		}
		return v.Text
	}
	row := newOriginal("?").way(t, db, asText)

	request := bareRequest(asText)
	var steps []*sql.Stmt
	var takes []bool // whether a step reads the request
	for step := range strings.SplitSeq(strings.TrimSuffix(text(t, "sqlite/bare.sql"), "\n;\n"), "\n;\n") {
		if strings.HasPrefix(step, "CREATE") {
			_, err := db.ExecContext(context.Background(), step)
			require.NoError(t, err)
			continue
		}
		steps, takes = append(steps, prepare(t, db, step)), append(takes, strings.Contains(step, "?1"))
	}
	return []way{row, {name: bare, call: 100, write: func(ctx context.Context, docs []doc) error {
		payload, err := request(docs)
		if err != nil {
			return err
		}
		return inTx(ctx, db, func() error {
			for i, step := range steps {
				var args []any
				if takes[i] {
					args = []any{payload}
				}
				if _, err := step.ExecContext(ctx, args...); err != nil {
					return err
				}
			}
			return nil
		})
	}}}
}
