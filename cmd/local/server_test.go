package main

import (
	"encoding/json"
	"io"
	"net/url"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"sqlwriter/cmd/internal/stackfile"
	"sqlwriter/internal/config"
	"sqlwriter/internal/cosmos"
	"sqlwriter/test/expect"
	"sqlwriter/test/sample"
	"sqlwriter/test/sqlservertest"
)

// opened opens a server's database as `run` does.
func opened(t *testing.T, dsn string) (*database, error) {
	t.Helper()
	return openServer(t.Context(), &output{w: io.Discard}, dsn, nil)
}

// execute runs statements on a database.
func (d *database) execute(t *testing.T, statements ...string) {
	t.Helper()
	for _, s := range statements {
		_, err := d.Writer.ExecContext(t.Context(), s)
		require.NoError(t, err, s)
	}
}

func (d *database) names(t *testing.T) (names []string) {
	t.Helper()
	all, err := d.tables(t.Context())
	require.NoError(t, err)
	for _, o := range all {
		names = append(names, o.String())
	}
	return names
}

// TestADatabaseOfAnotherProgramIsNeverTouched is TestAClaim on a server.
func TestADatabaseOfAnotherProgramIsNeverTouched(t *testing.T) {
	dsn := sqlservertest.NewDatabase(t)
	d, err := opened(t, dsn)
	require.NoError(t, err, "an empty one is taken")
	require.NoError(t, d.makeTables(t.Context()))
	_, err = opened(t, dsn)
	require.ErrorContains(t, err, "another stack uses database")
	d.execute(t, `CREATE VIEW sqlwriter.seen AS SELECT detail_id FROM sqlwriter.ledger`)
	require.NoError(t, d.release(), "it is killed")

	d, err = opened(t, dsn)
	require.NoError(t, err)
	require.Equal(t, []string{markTable}, d.names(t), "what the killed one made is removed")
	require.NoError(t, d.makeTables(t.Context()))
	d.execute(t, `CREATE TABLE dbo.MINE (x int)`)
	require.NoError(t, d.release(), "it is killed, and another program uses the database")

	_, err = opened(t, dsn)
	require.ErrorContains(t, err, "1 tables that no stack created (dbo.MINE), so nothing is touched")
	require.NotContains(t, err.Error(), "@")
	plain, err := connectSQL(t.Context(), dsn, nil)
	require.NoError(t, err)
	d = &database{Database: plain}
	require.Contains(t, d.names(t), "sqlwriter.ledger", "not even in part")
	require.Contains(t, d.names(t), "dbo.IVCE_DTL")
	require.NoError(t, d.endServer(t.Context()))

	plain, err = connectSQL(t.Context(), dsn, nil)
	require.NoError(t, err)
	d = &database{Database: plain}
	require.Equal(t, []string{"dbo.MINE"}, d.names(t), "what a stack made is removed at its end, and nothing else")
	require.NoError(t, d.release())
	_, err = opened(t, dsn)
	require.ErrorContains(t, err, "dbo.MINE")
}

func TestAMissingDatabaseIsCreated(t *testing.T) {
	dsn := sqlservertest.NewDatabase(t)
	name, err := databaseOf(dsn)
	require.NoError(t, err)
	admin, err := openOrCreate(t.Context(), &output{w: io.Discard}, dsn, name, nil)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, admin.Close()) })
	missing := name + "_2"
	var said strings.Builder
	d, err := openServer(t.Context(), &output{w: &said}, withDatabase(dsn, missing), nil)
	require.NoError(t, err)
	require.NoError(t, d.endServer(t.Context()))
	require.Contains(t, said.String(), "no database "+missing+": an empty one was created")
	require.Eventually(t, func() bool { // connections end a moment after they are closed
		_, err := admin.Writer.ExecContext(t.Context(), "DROP DATABASE "+bracket(missing))
		return err == nil
	}, time.Minute, 200*time.Millisecond)
}

// TestTheStackOnAServer is `make run SQL_CONNECTION=...` from the outside. It compares every row and allows only known
// differences of the engine.
func TestTheStackOnAServer(t *testing.T) {
	wholeStack(t)
	dsn := sqlservertest.NewDatabase(t)
	state := t.TempDir()
	first := start(t, "run", "--state="+state, "--sql="+dsn)
	first.waitFor(t, "the stack is running")
	require.Contains(t, first.output(), "while 200 documents arrived: 200 of them waited, 0 retries spent")
	stack, running, err := stackfile.Read(t.Context(), state)
	require.NoError(t, err)
	require.True(t, running)
	values, err := readSettings(stack.Settings)
	require.NoError(t, err)
	require.Equal(t, through(dsn, "127.0.0.1:"+portOf(t, values[config.SQLConnection])),
		values[config.SQLConnection], "behind a proxy")
	requireExact(t, dsn, values)

	other := start(t, "run", "--no-outage", "--state="+t.TempDir(), "--sql="+dsn)
	require.Equal(t, exitFailed, other.exit(t, time.Minute))
	require.Contains(t, other.output(), "another stack uses")
	require.NoError(t, first.cmd.Process.Signal(os.Interrupt))
	require.Equal(t, exitOK, first.exit(t, time.Minute), first.output())
	plain, err := connectSQL(t.Context(), dsn, nil)
	require.NoError(t, err)
	defer func() { require.NoError(t, plain.Close()) }()
	require.Empty(t, (&database{Database: plain}).names(t), "all that it made is removed")
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
		Connection: values[config.CosmosConnection], Database: values[config.CosmosDatabase],
		Container: values[config.CosmosContainer],
	})
	require.NoError(t, err)
	defer documents.Close()
	stored, err := (&drain{stack: &stack{documents: documents}}).stored(t.Context())
	require.NoError(t, err)
	docs, err := samples()
	require.NoError(t, err)
	docs = append(docs, outageSamples()...)
	name, err := databaseOf(dsn)
	require.NoError(t, err)
	store, err := openOrCreate(t.Context(), &output{w: io.Discard}, dsn, name, nil)
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
	t.Logf("%s: %d rows, %d values, %d of them with JSON's escapes left in by OPENJSON", version,
		result.Rows, result.Values, escaped)
}

// keepsEscapes recognizes a text with JSON escapes, because OPENJSON of Babelfish does not decode \" and similar
// escapes.
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
