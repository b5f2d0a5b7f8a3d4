package sqlite_test

import (
	"context"
	"database/sql"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"sync"
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
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// item is a plain document whose content depends on its id.
func item(id string, us int64, lines ...int64) commit.Item {
	values := make([]invoice.Value, len(invoice.Columns()))
	for i, c := range invoice.Columns() {
		values[i] = invoice.Null()
		if c.Source == invoice.FromDocument && c.Kind == invoice.Text {
			values[i] = invoice.Of(
				fmt.Sprintf("%s, %s, as long as such texts usually are", id, c.Path)[:min(c.Max, 40)])
			if c.Name == invoice.StatusColumn {
				values[i] = invoice.Of("RC-AI")
			}
		}
	}
	return commit.Item{
		DocumentID: id, Version: invoice.Version{US: us, Key: invoice.Key(id)}, SourceTS: 1,
		Hash:        invoice.Key("content" + id),
		HashVersion: invoice.HashVersion, Main: lines[0], Duplicates: lines[1:], Values: values,
	}
}

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
	_, err = s.Apply(t.Context(), []commit.Item{item("a", 1, 1)}, commit.Preview, breaker.Heartbeat{})
	require.NoError(t, err, "a preview runs on a connection that cannot write")
}

// The kind must not depend on messages: a trigger of the suite refuses with "no such table" and is still a document
// error.
func TestMissingTableOrColumnIsInfrastructure(t *testing.T) {
	for _, change := range []string{
		`DROP TABLE IVCE_DTL`, `DROP TABLE IVCE_TRKG_MSTR`, `DROP TABLE sqlwriter_ledger`,
		`ALTER TABLE IVCE_DTL RENAME COLUMN UPC_CD TO UPC`, `ALTER TABLE IVCE_TRKG_MSTR RENAME COLUMN RQST_TS TO RQST`,
		`ALTER TABLE sqlwriter_ledger RENAME COLUMN source_ts TO ts`,
	} {
		s := newStore(t)
		d := db{s}
		d.addLines(t, 1)
		apply(t, s, item("old", 1, 1)) // prepares the statements on the old schema
		require.NoError(t, s.Check(t.Context()))
		d.exec(t, change)
		for _, mode := range []commit.Mode{commit.Write, commit.Preview} {
			_, err := s.Apply(t.Context(), []commit.Item{item("a", 2, 1)}, mode, breaker.Heartbeat{})
			require.Equal(t, fault.Infrastructure, fault.KindOf(err), "%s, %s: %v", change, mode, err)
			require.Equal(t, "schema", fault.CodeOf(err))
		}
		require.Equal(t, fault.Infrastructure, fault.KindOf(s.Check(t.Context())))
	}
}

func TestApplyBeforeMigrateIsInfrastructure(t *testing.T) {
	s, err := sqlite.Open(t.Context(), filepath.Join(t.TempDir(), "new.db"), sqlite.Options{})
	require.NoError(t, err)
	defer func() { require.NoError(t, s.Close()) }()
	_, err = s.Apply(t.Context(), []commit.Item{item("a", 2, 1)}, commit.Write, breaker.Heartbeat{})
	require.Equal(t, fault.Infrastructure, fault.KindOf(err), "%v", err)
}

// A constraint that SQLite checks at COMMIT fails the commit. The connection must then work for the next request.
func TestFailedCommitIsAnError(t *testing.T) {
	s := newStore(t)
	d := db{s}
	d.addLines(t, 1, 2)
	d.exec(t, `CREATE TABLE allowed (name TEXT PRIMARY KEY)`)
	d.exec(t, `CREATE TABLE deferred (name TEXT REFERENCES allowed (name) DEFERRABLE INITIALLY DEFERRED)`)
	d.exec(t,
		`CREATE TRIGGER defer AFTER UPDATE ON IVCE_DTL WHEN NEW.IVCE_DTL_UID = 1 BEGIN INSERT INTO deferred VALUES ('x'); END`)
	out, err := s.Apply(t.Context(), []commit.Item{item("a", 1, 1), item("b", 1, 2)}, commit.Write, breaker.Heartbeat{})
	require.Nil(t, out)
	require.Equal(t, fault.Document, fault.KindOf(err), "%v", err)
	_, ok := d.ledger(t, 2)
	require.False(t, ok, "nothing of the request stays")
	require.Equal(t, invoice.OutcomeApplied, apply(t, s, item("b", 1, 2))[0].Verdict)
}

// Two processes on one file wait for each other, and the newest document wins.
func TestTwoStoresOnOneFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "shared.db")
	stores := []*sqlite.Store{openStore(t, path), openStore(t, path)}
	d := db{stores[0]}
	d.addLines(t, 1, 2, 3)
	const rounds = 30
	var wg sync.WaitGroup
	errs := make([]error, len(stores))
	for n, s := range stores {
		wg.Go(func() {
			for i := range rounds {
				id := fmt.Sprintf("doc %d %d", n, i)
				if _, err := s.Apply(t.Context(), []commit.Item{item(id, int64((i*7+n)%rounds), 1, 2, 3)}, commit.Write,
					breaker.Heartbeat{}); err != nil {
					errs[n] = err
					return
				}
			}
		})
	}
	wg.Wait()
	for _, err := range errs {
		require.NoError(t, err)
	}
	l, ok := d.ledger(t, 2)
	require.True(t, ok)
	require.Equal(t, int64(rounds-1), l.Version.US)
}

func TestBusyIsContention(t *testing.T) {
	path := filepath.Join(t.TempDir(), "busy.db")
	holder := openStore(t, path)
	d := db{holder}
	d.addLines(t, 1)
	s, err := sqlite.Open(t.Context(), path, sqlite.Options{BusyTimeout: time.Millisecond})
	require.NoError(t, err)
	defer func() { require.NoError(t, s.Close()) }()
	tx, err := holder.Writer().Begin()
	require.NoError(t, err)
	_, err = s.Apply(t.Context(), []commit.Item{item("a", 1, 1)}, commit.Write, breaker.Heartbeat{})
	require.Equal(t, fault.Contention, fault.KindOf(err), "%v", err)
	require.False(t, fault.Has(err, fault.OwnWhenAlone), "a lock that is never free concerns no document")
	_, err = s.Apply(t.Context(), []commit.Item{item("a", 1, 1)}, commit.Preview, breaker.Heartbeat{})
	require.NoError(t, err, "a preview does not wait")
	require.NoError(t, tx.Rollback())
	require.Equal(t, invoice.OutcomeApplied, apply(t, s, item("a", 1, 1))[0].Verdict)
}

// The handler recovers from panics, so the only writing connection must be free again.
func TestPanicLeavesNothingAndFreesTheConnection(t *testing.T) {
	s := newStore(t)
	d := db{s}
	d.addLines(t, 1)
	d.once("detail_update", func(*sql.Tx) error { panic("in the middle") })
	require.Panics(t, func() {
		_, _ = s.Apply(t.Context(), []commit.Item{item("a", 1, 1)}, commit.Write, breaker.Heartbeat{})
	})
	_, ok := d.ledger(t, 1)
	require.False(t, ok)
	require.Equal(t, invoice.OutcomeApplied, apply(t, s, item("a", 1, 1))[0].Verdict)
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
					items[i] = item(fmt.Sprintf("doc-%d-%d", size, done), int64(done), first, first+1, first+2)
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
	d := db{s}
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
			items[i] = item(fmt.Sprintf("doc-%d", n), 1, lines[n])
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
