package sqlite_test

import (
	"context"
	"database/sql"
	"errors"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	driver "modernc.org/sqlite"

	"sqlwriter/internal/adopt"
	"sqlwriter/internal/breaker"
	"sqlwriter/internal/commit"
	"sqlwriter/internal/fault"
	"sqlwriter/internal/invoice"
	"sqlwriter/internal/store/migration"
	"sqlwriter/internal/store/sqlite"
	"sqlwriter/test/mapping"
	"sqlwriter/test/sqltest"
)

// compiling counts the statements that SQLite compiles on a connection of a pool, except BEGIN and COMMIT. SQLite
// asks the authorizer about every table and function of a statement that it compiles.
func compiling(t *testing.T, pool *sql.DB) (taken func() int) {
	t.Helper()
	n := 0
	conn, err := pool.Conn(t.Context())
	require.NoError(t, err)
	defer func() { require.NoError(t, conn.Close()) }()
	require.NoError(t, conn.Raw(func(c any) error {
		return c.(driver.AuthorizerRegisterer).RegisterAuthorizer(
			func(action driver.AuthorizerActionCode, _, _, _, _ string) driver.AuthorizerReturnCode {
				if action != driver.AuthTransaction {
					n++
				}
				return driver.AuthorizerOK
			})
	}))
	return func() int {
		was := n
		n = 0
		return was
	}
}

func TestStatementsAreCompiledOnceForAConnection(t *testing.T) {
	s := newStore(t)
	s.Reader().SetMaxOpenConns(1)
	spying(s).addLines(t, 1, 2, 3)
	for mode, pool := range map[commit.Mode]*sql.DB{commit.Write: s.Writer(), commit.Preview: s.Reader()} {
		taken := compiling(t, pool)
		for us := range int64(6) {
			items := []commit.Item{sqltest.Item("a", 10*us, 1, 2), sqltest.Item("b", 10*us+1, 2, 3)}
			mark := sqltest.Item("c", 10*us+2, 3)
			mark.FailureMark, mark.Values = true, nil
			_, err := s.Apply(t.Context(), append(items, mark)[:1+us%3], mode, breaker.Heartbeat{})
			require.NoError(t, err)
			require.Equal(t, us == 0, taken() > 0, "%s, request %d", mode, us)
		}
	}
}

// After any error the next request must find its statements and no rows of the failed one.
func TestAFailedRequestLeavesNoBrokenStatement(t *testing.T) {
	s := newStore(t)
	spying(s).addLines(t, 1, 2)
	refused := errors.New("refused by the test")
	for n, step := range append([]string{""}, sqlite.WriteSteps()...) {
		first, second := sqltest.Item("first", int64(2*n+1), 1, 2), sqltest.Item("second", int64(2*n+2), 1)
		ctx, cancel := context.WithCancel(t.Context())
		s.SetAfterStatement(func(_ context.Context, _ *sql.Tx, name string) error {
			if name != step {
				return nil
			}
			if n%2 == 0 {
				cancel() // in the middle of the next statement
				return nil
			}
			return refused
		})
		_, err := s.Apply(ctx, []commit.Item{first, second}, commit.Write, breaker.Heartbeat{})
		cancel()
		s.SetAfterStatement(nil)
		if step == "" || step == "detail_mark" { // no request here runs it
			require.NoError(t, err)
		} else {
			require.Error(t, err, step)
		}
		require.Equal(t, invoice.OutcomeApplied,
			apply(t, s, sqltest.Item("third", int64(2*n+2), 2))[0].Verdict, "after %s", step)
	}
}

// Another process migrates, adds to the user's tables, and removes a table for a while.
func TestASchemaThatChangesUnderPreparedStatements(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x.db")
	s := openStore(t, path)
	spying(s).addLines(t, 1, 2)
	require.Equal(t, invoice.OutcomeApplied, apply(t, s, sqltest.Item("a", 1, 1, 2))[0].Verdict)
	preview := func() error {
		_, err := s.Apply(t.Context(), []commit.Item{sqltest.Item("p", 9, 1)}, commit.Preview, breaker.Heartbeat{})
		return err
	}
	require.NoError(t, preview())

	other := openStore(t, path)
	files, err := sqlite.MigrationFiles()
	require.NoError(t, err)
	require.NoError(t, other.MigrateWith(t.Context(), append(files, migration.New(len(files)+1, "later", `
		ALTER TABLE sqlwriter_ledger ADD COLUMN later TEXT;
		CREATE TABLE sqlwriter_later (a INTEGER);`))...))
	_, err = other.Writer().Exec(`ALTER TABLE IVCE_DTL ADD COLUMN THEIRS TEXT DEFAULT 'x'`)
	require.NoError(t, err)
	require.Equal(t, invoice.OutcomeApplied, apply(t, s, sqltest.Item("b", 2, 1, 2))[0].Verdict)
	require.NoError(t, preview())

	_, err = other.Writer().Exec(`ALTER TABLE IVCE_TRKG_MSTR RENAME TO gone`)
	require.NoError(t, err)
	for _, mode := range []commit.Mode{commit.Write, commit.Preview} {
		_, err = s.Apply(t.Context(), []commit.Item{sqltest.Item("c", 3, 1, 2)}, mode, breaker.Heartbeat{})
		require.Equal(t, "schema", fault.CodeOf(err), "%s: %v", mode, err)
	}
	_, err = other.Writer().Exec(`ALTER TABLE gone RENAME TO IVCE_TRKG_MSTR`)
	require.NoError(t, err)
	require.Equal(t, invoice.OutcomeApplied, apply(t, s, sqltest.Item("c", 3, 1, 2))[0].Verdict)
	require.NoError(t, preview())
	h := spying(s).spy.Row(t, 2)
	require.Equal(t, mapping.InUse().RowValues(sqltest.Item("c", 3, 1, 2).Values, 1, 2), h.Values)
}

// A new connection must have temp tables and statements of its own.
func TestAConnectionThatIsReplaced(t *testing.T) {
	s := newStore(t)
	spying(s).addLines(t, 1)
	s.Writer().SetMaxIdleConns(0) // the pool closes idle connections
	s.Reader().SetMaxIdleConns(0)
	for us := range int64(3) {
		require.Equal(t, invoice.OutcomeApplied, apply(t, s, sqltest.Item("a", us, 1))[0].Verdict)
		out, err := s.Apply(t.Context(), []commit.Item{sqltest.Item("b", us+1, 1)}, commit.Preview, breaker.Heartbeat{})
		require.NoError(t, err)
		require.Equal(t, invoice.OutcomeApplied, out[0].Verdict)
	}
	require.LessOrEqual(t, s.Writer().Stats().OpenConnections, 1)
	require.Greater(t, s.Writer().Stats().MaxIdleClosed, int64(2))
}

// The first request fails, and the next finds its statements once the tables exist.
func TestARequestBeforeTheTables(t *testing.T) {
	s, err := sqlite.Open(t.Context(), filepath.Join(t.TempDir(), "x.db"), sqlite.Options{})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	for _, mode := range []commit.Mode{commit.Write, commit.Preview} {
		_, err = s.Apply(t.Context(), []commit.Item{sqltest.Item("a", 1, 1)}, mode, breaker.Heartbeat{})
		require.Equal(t, "schema", fault.CodeOf(err), "%s: %v", mode, err)
	}
	_, stateErr := s.State(t.Context())
	_, heartbeatErr := s.Heartbeat(t.Context(), web())
	for _, err := range []error{
		stateErr, heartbeatErr, s.Page(t.Context(), adopt.Page{}), s.MarkEmpty(t.Context(), "me"),
	} {
		require.Equal(t, fault.Infrastructure, fault.KindOf(err), "%v", err)
		require.Equal(t, "schema", fault.CodeOf(err))
	}
	require.NoError(t, s.Migrate(t.Context()))
	require.NoError(t, sqlite.CreateSampleSchema(t.Context(), s.Writer()))
	spying(s).addLines(t, 1)
	for _, mode := range []commit.Mode{commit.Preview, commit.Write} {
		out, err := s.Apply(t.Context(), []commit.Item{sqltest.Item("a", 1, 1)}, mode, breaker.Heartbeat{})
		require.NoError(t, err)
		require.Equal(t, invoice.OutcomeApplied, out[0].Verdict)
	}
}
