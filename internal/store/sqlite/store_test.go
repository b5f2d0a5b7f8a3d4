package sqlite_test

import (
	"context"
	"database/sql"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"sqlwriter/internal/breaker"
	"sqlwriter/internal/commit"
	"sqlwriter/internal/fault"
	"sqlwriter/internal/invoice"
	"sqlwriter/internal/store/migration"
	"sqlwriter/internal/store/sqlite"
	"sqlwriter/test/sqltest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func apply(t testing.TB, s *sqlite.Store, items ...commit.Item) []commit.DocumentOutcome {
	t.Helper()
	out, err := s.Apply(context.Background(), items, commit.Write, breaker.Heartbeat{})
	require.NoError(t, err)
	return out
}

func TestOpenNamesTheError(t *testing.T) {
	dir := t.TempDir()
	text := filepath.Join(dir, "text.db")
	require.NoError(t,
		os.WriteFile(text,
			[]byte("this is no database, and long enough to be sure of that: "+string(make([]byte, 200))), 0o600))
	for name, path := range map[string]string{
		"empty": "", "scheme alone": "sqlite:", "in memory": ":memory:",
		"no such folder": filepath.Join(dir, "no", "such.db"),
		"a folder":       dir, "not a database": text,
	} {
		s, err := sqlite.Open(t.Context(), path, sqlite.Options{})
		require.Nil(t, s, name)
		require.Equal(t, fault.Infrastructure, fault.KindOf(err), "%s: %v", name, err)
	}
}

func TestOpenTakesTheSchemeAndAnyPath(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a b#?%20&=.db")
	s, err := sqlite.Open(t.Context(), "sqlite:"+path, sqlite.Options{})
	require.NoError(t, err)
	require.NoError(t, s.Close())
	_, err = os.Stat(path)
	require.NoError(t, err, "the file is where it was asked for")
}

func TestReadersCannotWrite(t *testing.T) {
	s := newStore(t)
	_, err := s.Reader().Exec(`INSERT INTO IVCE_DTL (IVCE_DTL_UID) VALUES (1)`)
	require.Error(t, err)
	_, err = s.Apply(t.Context(), []commit.Item{sqltest.Item("a", 1, 1)}, commit.Preview, breaker.Heartbeat{})
	require.NoError(t, err, "a preview runs on a connection that cannot write")
}

// A constraint that SQLite checks at COMMIT fails the commit. The connection must then work for the next request.
func TestFailedCommitIsAnError(t *testing.T) {
	s := newStore(t)
	d := spying(s)
	d.addLines(t, 1, 2)
	d.spy.Exec(t, `CREATE TABLE allowed (name TEXT PRIMARY KEY)`)
	d.spy.Exec(t, `CREATE TABLE deferred (name TEXT REFERENCES allowed (name) DEFERRABLE INITIALLY DEFERRED)`)
	d.spy.Exec(t,
		`CREATE TRIGGER defer AFTER UPDATE ON IVCE_DTL WHEN NEW.IVCE_DTL_UID = 1 BEGIN INSERT INTO deferred VALUES ('x'); END`)
	out, err := s.Apply(t.Context(), []commit.Item{sqltest.Item("a", 1, 1), sqltest.Item("b", 1, 2)}, commit.Write,
		breaker.Heartbeat{})
	require.Nil(t, out)
	require.Equal(t, fault.Document, fault.KindOf(err), "%v", err)
	_, ok := d.spy.Ledger(t, 2)
	require.False(t, ok, "nothing of the request stays")
	require.Equal(t, invoice.OutcomeApplied, apply(t, s, sqltest.Item("b", 1, 2))[0].Verdict)
}

// The handler recovers from panics, so the only writing connection must be free again.
func TestPanicLeavesNothingAndFreesTheConnection(t *testing.T) {
	s := newStore(t)
	d := spying(s)
	d.addLines(t, 1)
	d.once("detail_update", func(*sql.Tx) error { panic("in the middle") })
	require.Panics(t, func() {
		_, _ = s.Apply(t.Context(), []commit.Item{sqltest.Item("a", 1, 1)}, commit.Write, breaker.Heartbeat{})
	})
	_, ok := d.spy.Ledger(t, 1)
	require.False(t, ok)
	require.Equal(t, invoice.OutcomeApplied, apply(t, s, sqltest.Item("a", 1, 1))[0].Verdict)
}

// A preview reads beside a writer. The lock's other rules are cases of TestSink.
func TestAPreviewDoesNotWait(t *testing.T) {
	s := newStore(t)
	spying(s).addLines(t, 1)
	tx, err := s.Writer().Begin()
	require.NoError(t, err)
	defer func() { require.NoError(t, tx.Rollback()) }()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute) // a preview that waited would wait for ever
	defer cancel()
	_, err = s.Apply(ctx, []commit.Item{sqltest.Item("a", 1, 1)}, commit.Preview, breaker.Heartbeat{})
	require.NoError(t, err)
}

func TestMigrations(t *testing.T) {
	s := newStore(t)
	ctx := t.Context()
	require.NoError(t, s.Migrate(ctx), "again is nothing")
	files, err := sqlite.MigrationFiles()
	require.NoError(t, err)
	next := len(files) + 1
	require.NoError(t, s.MigrateWith(ctx, migration.New(next, "later", "CREATE TABLE sqlwriter_later (x)")))
	require.NoError(t, s.Migrate(ctx), "a build that knows less runs on what a later one made")
	err = s.MigrateWith(ctx, migration.New(next, "later", "CREATE TABLE sqlwriter_other (x)"))
	require.Equal(t, "migration_checksum", fault.CodeOf(err), "%v", err)
	require.Equal(t, fault.Infrastructure, fault.KindOf(err))
	err = s.MigrateWith(ctx,
		migration.New(next+1, "good", "CREATE TABLE sqlwriter_good (x)"),
		migration.New(next+2, "bad", "CREATE TABLE sqlwriter_bad (x); CREATE TABLE sqlwriter_bad (x)"))
	require.Error(t, err)
	var tables int
	require.NoError(t, s.Reader().QueryRow(
		`SELECT count(*) FROM sqlite_master WHERE name IN ('sqlwriter_good', 'sqlwriter_bad', 'sqlwriter_other')`).Scan(&tables))
	require.Zero(t, tables, "all of them or none")
}

// BenchmarkApply writes 100 documents a request, each with a main line and two duplicates, to existing lines.
func BenchmarkApply(b *testing.B) {
	s := newStore(b)
	const lines = 300_000
	_, err := s.Writer().Exec(`WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ?)
		INSERT INTO IVCE_DTL (IVCE_DTL_UID) SELECT i FROM n`, lines)
	require.NoError(b, err)
	for _, size := range []int{1, 25, 100} {
		b.Run(fmt.Sprintf("%d documents a request", size), func(b *testing.B) {
			done := 0
			items := make([]commit.Item, size)
			b.ReportAllocs()
			for b.Loop() {
				for i := range items {
					first := int64(done*3%(lines-3) + 1)
					items[i] = sqltest.Item(fmt.Sprintf("doc-%d-%d", size, done), int64(done), first, first+1, first+2)
					done++
				}
				apply(b, s, items...)
			}
			b.ReportMetric(float64(done)/b.Elapsed().Seconds(), "docs/s")
		})
	}
}

// Memory must depend on the request and not on earlier writes.
func TestMemoryStaysSmall(t *testing.T) {
	s := newStore(t)
	d := spying(s)
	const requests, size = 12, 100
	lines := make([]int64, requests*size)
	for i := range lines {
		lines[i] = int64(i + 1)
	}
	d.addLines(t, lines...)
	var before, after runtime.MemStats
	for r := range requests {
		items := make([]commit.Item, size)
		for i := range items {
			n := r*size + i
			items[i] = sqltest.Item(fmt.Sprintf("doc-%d", n), 1, lines[n])
		}
		apply(t, s, items...)
		if r == 3 {
			runtime.GC()
			runtime.ReadMemStats(&before)
		}
	}
	runtime.GC()
	runtime.ReadMemStats(&after)
	require.Less(t, int64(after.HeapAlloc)-int64(before.HeapAlloc), int64(4<<20))
}
