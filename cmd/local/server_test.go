package main

import (
	"encoding/json"
	"io"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"sqlwriter/cmd/internal/stackfile"
	"sqlwriter/cmd/local/expect"
	"sqlwriter/cmd/local/internal/term"
	"sqlwriter/cmd/local/sample"
	"sqlwriter/internal/config"
	"sqlwriter/internal/cosmos"
	"sqlwriter/test/sqlservertest"
)

// opened opens a server's database as `run` does.
func opened(t *testing.T, o serverOptions) (*server, error) {
	t.Helper()
	db, err := openServer(t.Context(), term.New(io.Discard), o)
	if err != nil {
		require.Nil(t, db)
		return nil, err
	}
	return db.(*server), nil
}

// execute runs statements on a database.
func (d *server) execute(t *testing.T, statements ...string) {
	t.Helper()
	for _, s := range statements {
		_, err := d.db.Writer.ExecContext(t.Context(), s)
		require.NoError(t, err, s)
	}
}

func (d *server) names(t *testing.T) (names []string) {
	t.Helper()
	all, err := d.tables(t.Context())
	require.NoError(t, err)
	for _, o := range all {
		names = append(names, o.name)
	}
	return names
}

// TestADatabaseOfAnotherProgramIsNeverTouched checks that the stack changes only databases that it has created or marked.
func TestADatabaseOfAnotherProgramIsNeverTouched(t *testing.T) {
	dsn := sqlservertest.NewDatabase(t)
	o := serverOptions{dsn: dsn, dir: t.TempDir()}
	d, err := opened(t, o)
	require.NoError(t, err, "an empty one is taken")
	require.NoError(t, d.make(t.Context()))
	require.NoError(t, d.close())

	kept := o
	kept.hasState = true
	d, err = opened(t, kept)
	require.NoError(t, err, "the same state folder goes on")
	_, err = opened(t, kept)
	require.ErrorContains(t, err, "another stack uses database")
	require.NoError(t, d.close())

	for name, c := range map[string]struct {
		change func(*serverOptions)
		want   string
	}{
		"another folder":                {func(o *serverOptions) { o.dir = t.TempDir() }, "another state folder"},
		"another folder with documents": {func(o *serverOptions) { o.dir, o.hasState = t.TempDir(), true }, "another state folder"},
		"a temporary run":               {func(o *serverOptions) { o.dir, o.once = t.TempDir(), true }, "another state folder"},
		"the documents are gone":        {func(*serverOptions) {}, "another state folder"},
	} {
		other := o
		c.change(&other)
		_, err = opened(t, other)
		require.ErrorContains(t, err, c.want, name)
		require.ErrorContains(t, err, "FRESH=1", name)
		require.NotContains(t, err.Error(), "@", name)
	}

	// Another program uses it now: nothing is removed with any option.
	d, err = opened(t, kept)
	require.NoError(t, err)
	d.execute(t, `CREATE TABLE dbo.MINE (x int)`, `INSERT INTO dbo.IVCE_DTL (IVCE_DTL_UID, ITM_LDSC) VALUES (5, N'MINE')`)
	require.NoError(t, d.close())
	fresh := o
	fresh.fresh = true
	_, err = opened(t, fresh)
	require.ErrorContains(t, err, "has 1 rows in dbo.IVCE_DTL and dbo.IVCE_TRKG_MSTR that no stack inserted")
	d, err = opened(t, kept)
	require.NoError(t, err)
	require.Contains(t, d.names(t), "sqlwriter.ledger", "not even in part")
	d.execute(t, `DELETE FROM dbo.IVCE_DTL WHERE IVCE_DTL_UID = 5`)
	require.NoError(t, d.close())
	d, err = opened(t, fresh)
	require.NoError(t, err)
	require.Equal(t, []string{"dbo.MINE", markTable}, d.names(t), "what a stack made is removed, and nothing else")
	d.execute(t, `DROP TABLE `+markTable)
	require.NoError(t, d.close())

	// Without the mark it is another program's database.
	for _, other := range []serverOptions{o, fresh, {dsn: dsn, dir: t.TempDir(), once: true}, {dsn: dsn, dir: t.TempDir(), once: true, fresh: true}} {
		_, err = opened(t, other)
		require.ErrorContains(t, err, "1 tables that no stack created (dbo.MINE), so nothing is touched")
	}
	_, err = opened(t, kept)
	require.ErrorContains(t, err, "FRESH=1 deletes them", "documents without their rows")
}

func TestATemporaryRunDropsItsTables(t *testing.T) {
	dsn := sqlservertest.NewDatabase(t)
	once := serverOptions{dsn: dsn, dir: t.TempDir(), once: true}
	d, err := opened(t, once)
	require.NoError(t, err)
	require.NoError(t, d.make(t.Context()))
	d.execute(t, `CREATE VIEW sqlwriter.seen AS SELECT detail_id FROM sqlwriter.ledger`)
	_, err = sample.SeedLines(t.Context(), d.pool(), []int64{7, 8})
	require.NoError(t, err)
	require.NoError(t, d.release(), "it is killed")

	d, err = opened(t, once)
	require.NoError(t, err, "what a temporary run left behind is nobody's")
	require.Equal(t, []string{markTable}, d.names(t))
	require.NoError(t, d.make(t.Context()))
	require.NoError(t, d.close())
	d, err = opened(t, serverOptions{dsn: dsn, dir: t.TempDir()})
	require.NoError(t, err)
	require.Equal(t, []string{markTable}, d.names(t), "the database was empty again")
	require.NoError(t, d.close())
}

func TestAMissingDatabaseIsCreated(t *testing.T) {
	dsn := sqlservertest.NewDatabase(t)
	name, err := databaseOf(dsn)
	require.NoError(t, err)
	admin, err := openOrCreate(t.Context(), term.New(io.Discard), dsn, name)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, admin.Close()) })
	missing := name + "_2"
	var output strings.Builder
	d, err := openServer(t.Context(), term.New(&output), serverOptions{dsn: withDatabase(dsn, missing), dir: t.TempDir()})
	require.NoError(t, err)
	require.NoError(t, d.close())
	require.Contains(t, output.String(), "no database "+missing+": an empty one was created")
	require.Eventually(t, func() bool { // connections end a moment after they are closed
		_, err := admin.Writer.ExecContext(t.Context(), "DROP DATABASE "+bracket(missing))
		return err == nil
	}, time.Minute, 200*time.Millisecond)
}

// TestTheStackOnAServer is `make run SQL_CONNECTION=...` from the outside, twice on one state. It compares every row
// and allows only known differences of the engine.
func TestTheStackOnAServer(t *testing.T) {
	if testing.Short() {
		t.Skip("starts the whole stack")
	}
	if err := prerequisites(); err != nil {
		t.Skip(err)
	}
	dsn := sqlservertest.NewDatabase(t)
	state := t.TempDir()
	first := start(t, "run", "--no-outage", "--state="+state, "--sql="+dsn)
	first.waitFor(t, "the stack is running")
	require.NotContains(t, first.output(), "from an earlier run")
	s, running, err := stackfile.Read(t.Context(), state)
	require.NoError(t, err)
	require.True(t, running)
	values, err := readSettings(s.Settings)
	require.NoError(t, err)
	require.Equal(t, through(dsn, "127.0.0.1:"+portOf(t, values[config.SQLConnection])), values[config.SQLConnection])
	off := start(t, "demo", "--state="+state, "sql-off", "10m")
	off.waitFor(t, "SQL is off for 10m0s")
	_, err = net.Dial("tcp", "127.0.0.1:"+portOf(t, values[config.SQLConnection]))
	require.ErrorIs(t, err, syscall.ECONNREFUSED)
	require.NoError(t, off.cmd.Process.Kill())
	first.waitFor(t, "SQL is on again")
	requireExact(t, dsn, values)

	other := start(t, "run", "--once", "--no-outage", "--sql="+dsn)
	require.Equal(t, exitFailed, other.exit(t, time.Minute))
	require.Contains(t, other.output(), "another stack uses")
	require.NoError(t, first.cmd.Process.Signal(os.Interrupt))
	require.Equal(t, exitOK, first.exit(t, time.Minute), first.output())

	again := start(t, "run", "--no-outage", "--state="+state, "--sql="+dsn)
	again.waitFor(t, "the stack is running")
	require.Contains(t, again.output(), "from an earlier run: 518 documents")
	values, err = readSettings(s.Settings) // another stack may have its ports now
	require.NoError(t, err)
	requireExact(t, dsn, values)
	require.NoError(t, again.cmd.Process.Signal(os.Interrupt))
	require.Equal(t, exitOK, again.exit(t, time.Minute), again.output())

	file := start(t, "run", "--no-outage", "--state="+state)
	require.Equal(t, exitFailed, file.exit(t, time.Minute))
	require.Contains(t, file.output(), "belong to a database on a server")
	require.NoFileExists(t, filepath.Join(state, "sqlwriter.db"))
}

func portOf(t *testing.T, dsn string) string {
	t.Helper()
	u, err := url.Parse(dsn)
	require.NoError(t, err)
	return u.Port()
}

// requireExact reads every document and every row and compares them.
func requireExact(t *testing.T, dsn string, values map[string]string) {
	t.Helper()
	documents, err := cosmos.Open(cosmos.Options{
		Connection: values[config.CosmosConnection], Database: values[config.CosmosDatabase], Container: values[config.CosmosContainer],
	})
	require.NoError(t, err)
	defer documents.Close()
	stored, err := (&drain{stack: &stack{documents: documents}}).stored(t.Context())
	require.NoError(t, err)
	docs, err := samples()
	require.NoError(t, err)
	name, err := databaseOf(dsn)
	require.NoError(t, err)
	store, err := openOrCreate(t.Context(), term.New(io.Discard), dsn, name)
	require.NoError(t, err)
	defer func() { require.NoError(t, store.Close()) }()
	now, err := expect.ReadServer(t.Context(), store.Writer)
	require.NoError(t, err)
	in := sample.Input(docs, stored)
	in.Redelivered = true
	result := expect.Compare(now, in)
	version, escaped := sqlservertest.Version(t, store.Writer), 0
	for _, d := range result.Differences {
		if sqlservertest.IsReal(version) || !keepsEscapes(d) {
			t.Error(d)
			continue
		}
		escaped++
	}
	require.Greater(t, result.Rows, 2500)
	t.Logf("%s: %d rows, %d values, %d of them with JSON's escapes left in by OPENJSON", version, result.Rows, result.Values, escaped)
}

// keepsEscapes recognizes a text with JSON escapes, because OPENJSON of Babelfish does not decode \" and similar escapes.
func keepsEscapes(d expect.Difference) bool {
	want, err := strconv.Unquote(d.Want)
	if err != nil {
		return false
	}
	got, err := strconv.Unquote(d.Got)
	if err != nil {
		return false
	}
	var read string
	return json.Unmarshal([]byte(`"`+got+`"`), &read) == nil && read == want && got != want
}
