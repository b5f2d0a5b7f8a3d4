package bench

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"sqlwriter/internal/invoice"
	"sqlwriter/internal/sqlite"
)

// firstLine is the first detail row of a bench database.
const firstLine = 1_000_001

// newSQLite is a database file with our schema and the user's tables, and detail rows made as they are needed.
func newSQLite(t testing.TB) *engine {
	t.Helper()
	ctx := context.Background()
	s, err := sqlite.Open(ctx, filepath.Join(t.TempDir(), "bench.db"), sqlite.Options{})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	require.NoError(t, s.Migrate(ctx))
	db := s.Writer()
	require.NoError(t, sqlite.CreateSampleSchema(ctx, db))
	// SQLite adds no constraint to a table that is there; a trigger refuses just as well.
	for _, when := range []string{"INSERT", "UPDATE"} {
		_, err = db.ExecContext(ctx, fmt.Sprintf(`CREATE TRIGGER refuse_%[1]s BEFORE %[1]s ON IVCE_DTL
			WHEN NEW.UNSPSC_CD = '%[2]s' BEGIN SELECT RAISE(ABORT, 'refused'); END`, when, refusedCode))
		require.NoError(t, err)
	}
	e := &engine{name: "SQLite", db: db, ledger: "sqlwriter_ledger"}
	require.NoError(t, db.QueryRowContext(ctx, "SELECT sqlite_version()").Scan(&e.version))
	_, err = db.ExecContext(ctx, "MERGE INTO IVCE_DTL USING (SELECT 1) ON 1 WHEN MATCHED THEN DELETE")
	require.Error(t, err)
	e.remark = fmt.Sprintf("A file has no distance, so there is one table, and a request is a transaction that writes. "+
		"A commit waits for the disk (WAL, synchronous=FULL). MERGE is not measured: SQLite has none (%v).", err)
	next := int64(firstLine)
	e.lines = func(n int) int64 {
		from := next
		_, err := db.ExecContext(ctx, `WITH RECURSIVE n(i) AS (SELECT ?1 UNION ALL SELECT i + 1 FROM n WHERE i + 1 < ?1 + ?2)
			INSERT INTO IVCE_DTL (IVCE_DTL_UID, IVCE_NUM, ITM_LDSC) SELECT i, 'INV-88041', 'CONN STRN RLF 1/2IN 425' FROM n`, from, n)
		require.NoError(t, err)
		next += int64(n)
		return from
	}
	e.lane = func(time.Duration, bool) lane { return sqliteLane(t, s) }
	return e
}

// sqliteLane has the ways on a file.
func sqliteLane(t testing.TB, store *sqlite.Store) lane {
	t.Helper()
	n, s, db := &atomic.Int64{}, newStatements(), store.Writer()
	asText := func(_ invoice.Column, v invoice.Value) any {
		if v.Null {
			return nil
		}
		return v.Text
	}
	row := newOriginal(func(n int) string { return fmt.Sprintf("?%d", n) }, asText).prepared(t, db, "row at a time, prepared")
	ways := []way{row}
	for _, b := range []struct {
		name    string
		request func(docs []doc, m member) ([]byte, error)
	}{{"nested", s.nested}, {"flat", s.flat}} {
		steps := strings.Split(strings.TrimSuffix(s.text(t, "sqlite", b.name), "\n;"), "\n;\n")
		ways = append(ways, way{bare, bareName + ", " + b.name, 100, []kind{first, repeat}, func(ctx context.Context, docs []doc, _ kind) error {
			request, err := b.request(docs, asText)
			if err != nil {
				return err
			}
			tx, err := db.BeginTx(ctx, nil)
			if err != nil {
				return err
			}
			defer func() { _ = tx.Rollback() }() // after a commit it does nothing
			for _, step := range steps {
				var args []any
				if strings.Contains(step, "?1") {
					args = []any{string(request)}
				}
				if _, err := tx.ExecContext(ctx, step, args...); err != nil {
					return err
				}
			}
			return tx.Commit()
		}})
	}
	for i := range ways {
		write := ways[i].write
		ways[i].write = func(ctx context.Context, docs []doc, k kind) error {
			n.Add(1)
			return write(ctx, docs, k)
		}
	}
	return lane{ways: append(ways, waysOver(counted{store, n})...), requests: n.Load}
}
