package sqlserver_test

import (
	"database/sql"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"sqlwriter/internal/breaker"
	"sqlwriter/internal/commit"
	"sqlwriter/internal/fault"
	"sqlwriter/internal/invoice"
	"sqlwriter/internal/store/migration"
	"sqlwriter/internal/store/sqlserver"
	"sqlwriter/test/mapping"
	"sqlwriter/test/sqlservertest"
	"sqlwriter/test/sqltest"
)

func TestMigrations(t *testing.T) {
	ctx := t.Context()
	dsn := sqlservertest.NewDatabase(t)
	s := openStore(t, dsn)
	states, err := s.MigrationStatus(ctx)
	require.NoError(t, err)
	require.NotEmpty(t, states)
	require.Equal(t, len(states), migration.Count(states, migration.Pending), "an empty database has none")
	require.ErrorContains(t, s.Check(ctx), "sqlwriterctl migrate up")

	errs := make([]error, 2)
	var group sync.WaitGroup
	for i := range errs { // the second waits for the first and changes nothing
		group.Go(func() { errs[i] = s.Migrate(ctx) })
	}
	group.Wait()
	require.Equal(t, []error{nil, nil}, errs)
	states, err = s.MigrationStatus(ctx)
	require.NoError(t, err)
	require.Equal(t, len(states), migration.Count(states, migration.Applied))
	for _, st := range states {
		require.WithinDuration(t, time.Now(), st.At, 10*time.Minute)
	}

	n := len(states)
	list := func(last string) []migration.File {
		return append(ownMigrations(t), migration.New(n+1, fmt.Sprintf("%04d_more", n+1), last))
	}
	require.NoError(t, s.MigrateWith(ctx, list("CREATE TABLE sqlwriter.more (a int NOT NULL)")...))
	require.NoError(t, s.Migrate(ctx), "a database that knows more than this build is fine")
	states, err = s.MigrationStatus(ctx)
	require.NoError(t, err)
	require.Equal(t, 1, migration.Count(states, migration.Unknown))
	err = s.MigrateWith(ctx, list("CREATE TABLE sqlwriter.other (a int NOT NULL)")...)
	require.Equal(t, "migration_checksum", fault.CodeOf(err), "%v", err)
	files := append(list("CREATE TABLE sqlwriter.more (a int NOT NULL)"),
		migration.New(n+2, "good", "CREATE TABLE sqlwriter.good (a int NOT NULL)"),
		migration.New(n+3, "bad", "CREATE TABLE sqlwriter.more (a int NOT NULL)"))
	require.Error(t, s.MigrateWith(ctx, files...))
	var there sql.NullInt64
	require.NoError(t, s.DB().QueryRow(`SELECT OBJECT_ID(N'sqlwriter.good')`).Scan(&there))
	require.False(t, there.Valid, "a migration that fails leaves nothing of those before it")
}

func ownMigrations(t *testing.T) []migration.File {
	t.Helper()
	files, err := migration.Read(os.DirFS("."), "migrations")
	require.NoError(t, err)
	return files
}

// After the script Migrate must find nothing to do, and a second run of the script must change nothing.
func TestTheScriptDoesTheWorkOfMigrate(t *testing.T) {
	ctx := t.Context()
	dsn := sqlservertest.NewDatabase(t)
	s := openStore(t, dsn)
	script, err := sqlserver.MigrationScript(sqlserver.Options{}, sqlserver.SetUp{})
	require.NoError(t, err)
	for range 2 {
		runScript(t, s.DB(), script)
		states, err := s.MigrationStatus(ctx)
		require.NoError(t, err)
		require.Equal(t, len(states), migration.Count(states, migration.Applied))
	}
	require.NoError(t, s.Migrate(ctx))
	require.NoError(t, sqlserver.CreateSampleSchema(ctx, s.DB(), sqlserver.Options{}))
	require.NoError(t, s.Check(ctx))
}

// runScript runs the batches between GO on one connection, as sqlcmd does.
func runScript(t *testing.T, db *sql.DB, script string) {
	t.Helper()
	conn, err := db.Conn(t.Context())
	require.NoError(t, err)
	defer func() { require.NoError(t, conn.Close()) }()
	runBatches(t, conn, script)
}

func runBatches(t *testing.T, conn *sql.Conn, script string) {
	t.Helper()
	for batch := range strings.SplitSeq(script, "\nGO\n") {
		if strings.TrimSpace(batch) == "" {
			continue
		}
		_, err := conn.ExecContext(t.Context(), batch)
		require.NoError(t, err, batch)
	}
}

// A build or settings file with other procedures must report both hashes and the differences. migrate up adds its
// procedures, and the others still work.
func TestProceduresOfTwoSettingsFiles(t *testing.T) {
	ctx := t.Context()
	d := newDatabase(t)
	d.harness(t).AddLines(t, 1)
	d.spy.Exec(t, `ALTER TABLE dbo.IVCE_TRKG_MSTR ADD REQUEST_TIME datetime2(6) NULL`)
	first, err := d.store.ProcedureState(ctx)
	require.NoError(t, err)
	require.Empty(t, first.Missing)
	require.WithinDuration(t, time.Now(), first.At, 10*time.Minute)
	renamed := mapping.Renamed()
	other, err := sqlserver.Open(ctx, d.dsn, sqlserver.Options{Mapping: renamed, LockTimeout: lockTimeout})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, other.Close()) })
	state, err := other.ProcedureState(ctx)
	require.NoError(t, err)
	set, _, err := sqlserver.Produced(nil)
	require.NoError(t, err)
	require.Len(t, state.Missing, len(set))
	require.Equal(t, first.Hash, state.Latest)
	require.Equal(t, []string{
		fmt.Sprintf("only here: mapping %d", renamed.Version()),
		"only here: column IVCE_TRKG_MSTR.REQUEST_TIME datetime2(6) from (request_time)",
		fmt.Sprintf("only there: mapping %d", mapping.InUse().Version()),
		"only there: column IVCE_TRKG_MSTR.RQST_TS datetime2(6) from (request_time)",
	}, state.Differs)
	err = other.Check(ctx)
	require.Equal(t, "schema", fault.CodeOf(err), "%v", err)
	for _, part := range []string{
		first.Hash, state.Hash, "which differs in: only here: mapping",
		"sqlwriterctl migrate up",
	} {
		require.ErrorContains(t, err, part)
	}
	_, err = other.Apply(ctx, []commit.Item{sqltest.Item("a", 10, 1)}, commit.Write, breaker.Heartbeat{})
	require.Error(t, err, "there is no other way to write")

	require.NoError(t, other.Migrate(ctx))
	require.NoError(t, other.Check(ctx))
	for i, s := range []*sqlserver.Store{other, d.store} {
		out, err := s.Apply(ctx, []commit.Item{sqltest.Item("b", int64(20+i), 1)}, commit.Write, breaker.Heartbeat{})
		require.NoError(t, err)
		require.Equal(t, invoice.OutcomeApplied, out[0].Verdict)
	}
	require.NoError(t, other.Migrate(ctx), "once is enough")
	again, err := other.ProcedureState(ctx)
	require.NoError(t, err)
	require.Empty(t, again.Missing)
}
