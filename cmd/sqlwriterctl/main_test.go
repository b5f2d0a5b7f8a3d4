package main

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"sqlwriter/cmd/internal/stackfile"
	"sqlwriter/internal/cosmos"
	"sqlwriter/internal/fault"
	"sqlwriter/internal/invoice"
	"sqlwriter/internal/store/sqlite"
	"sqlwriter/internal/timer"
	"sqlwriter/test/emulators/cosmosdb"
	"sqlwriter/test/emulators/cosmosdb/cosmosdbtest"
	"sqlwriter/test/mapping"
	"sqlwriter/test/sqlitetest"
)

const example = "../../examples/01-plain-success.json"

const exampleID = "2025-12-17 10:30:00.000000-06:00-0001-1421549"

// chicago is the operator's zone. Nobody who works on this project has to be there for the tests to pass.
var chicago = time.FixedZone("", -6*60*60) //nolint:gochecknoglobals // constant

// bench is an empty environment.
type bench struct {
	dir         string
	env         map[string]string
	stdin       string
	out, errors string
	// asks, shows and wait are as in environment.
	asks, shows bool
	wait        func(context.Context, time.Duration) error
	now         func() time.Time
	http        *http.Client
}

func newBench(t *testing.T) *bench {
	t.Helper()
	return &bench{dir: t.TempDir(), env: map[string]string{}, wait: timer.Wait, now: time.Now, http: http.DefaultClient}
}

func (b *bench) environment(stdout, stderr *bytes.Buffer) environment {
	return environment{
		lookup: func(name string) (string, bool) { v, ok := b.env[name]; return v, ok },
		dir:    b.dir, stdin: strings.NewReader(b.stdin), stdout: stdout, stderr: stderr,
		asks: b.asks, shows: b.shows, zone: chicago, now: b.now, wait: b.wait, http: b.http,
	}
}

func (b *bench) run(t *testing.T, args ...string) int {
	t.Helper()
	var stdout, stderr bytes.Buffer
	code := execute(t.Context(), args, b.environment(&stdout, &stderr))
	b.out, b.errors = stdout.String(), stderr.String()
	return code
}

func (b *bench) localSettings(t *testing.T, name string, values map[string]string) {
	t.Helper()
	text, err := json.Marshal(map[string]any{"IsEncrypted": false, "Values": values})
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(b.dir, name), text, 0o600))
}

// stack writes the file of a local stack with its settings, and returns their path.
func (b *bench) stack(t *testing.T, started string, s stackfile.Stack) {
	t.Helper()
	b.localSettings(t, "stack.settings.json", map[string]string{"SQL_CONNECTION": "sqlite:stack.db"})
	require.NoError(t, os.MkdirAll(filepath.Join(b.dir, stackfile.Dir), 0o700))
	s.Runner = stackfile.Process{Name: "run", PID: os.Getpid(), Started: started}
	s.Settings = filepath.Join(b.dir, "stack.settings.json")
	require.NoError(t, stackfile.Write(filepath.Join(b.dir, stackfile.Dir), s))
}

func (b *bench) runningStack(t *testing.T, s stackfile.Stack) {
	t.Helper()
	me, err := stackfile.Started(t.Context(), os.Getpid())
	require.NoError(t, err)
	b.stack(t, me, s)
}

func TestWrongUsageIsTwo(t *testing.T) {
	b := newBench(t)
	for _, args := range [][]string{
		{"nonsense"},
		{"document", "why"},
		{"document", "submit"},
		{"column", "list", "--wat"},
		{"document", "why", "x"},
		{"status", "-o", "xml"},
	} {
		require.Equal(t, exitUsage, b.run(t, args...), args)
		require.NotEmpty(t, b.errors)
	}
	require.Equal(t, exitOK, b.run(t, "--help"))
	require.Contains(t, b.out, "document <command>")
}

func TestColumns(t *testing.T) {
	b := newBench(t)
	require.Equal(t, exitOK, b.run(t, "column", "list"))
	for _, c := range invoice.DefaultMapping().Columns() {
		require.Contains(t, b.out, c.Name)
	}
	require.Contains(t, b.out, "decimal(5,4) 0..1")
	require.Contains(t, b.out, "(parent)")
	require.Equal(t, exitOK, b.run(t, "column", "list", "-o", "json"))
	want, err := json.Marshal(invoice.DefaultMapping().Columns())
	require.NoError(t, err)
	require.JSONEq(t, string(want), b.out)
}

func TestColumnsShowsThisDeploymentsMapping(t *testing.T) {
	b := newBench(t)
	write := func(name string, edit func(map[invoice.Table]*mapping.Table)) {
		path := filepath.Join(b.dir, name)
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o750))
		require.NoError(t, os.WriteFile(path, mapping.File(edit), 0o600))
	}
	const scriptRoot = ".stage"
	write("environment.json", func(tables map[invoice.Table]*mapping.Table) {
		tables[invoice.Tracking].Key = "DTL_ID"
		tables[invoice.Tracking].Column("RQST_TS")["name"] = "OF_THE_ENVIRONMENT"
	})
	write(scriptRoot+"/names.json", func(tables map[invoice.Table]*mapping.Table) {
		tables[invoice.Tracking].Column("RQST_TS")["name"] = "OF_THE_FILE"
	})

	b.localSettings(t, scriptRoot+"/local.settings.json",
		map[string]string{"SQL_CONNECTION": "sqlite:x.db", "MAPPING": "names.json"})
	file := "--settings=" + filepath.Join(b.dir, scriptRoot, "local.settings.json")
	require.Equal(t, exitOK, b.run(t, "column", "list", file), b.errors)
	require.Contains(t, b.out, "OF_THE_FILE", "relative to the file, as the handler has it in the script root")
	require.NotContains(t, b.out, "RQST_TS")
	require.Contains(t, b.errors, "mapping: names.json, version ")
	require.Contains(t, b.errors, " (--settings)")

	require.Equal(t, exitOK, b.run(t, "column", "list"))
	require.Contains(t, b.out, "RQST_TS", "nothing is named")
	b.env["MAPPING"] = filepath.Join(b.dir, "environment.json")
	require.Equal(t, exitOK, b.run(t, "column", "list", "-o", "json"))
	var all []invoice.Column
	require.NoError(t, json.Unmarshal([]byte(b.out), &all))
	require.True(t, slices.ContainsFunc(all, func(c invoice.Column) bool { return c.Name == "OF_THE_ENVIRONMENT" }),
		"no connection is needed")
	b.env["SQL_CONNECTION"] = "sqlite:y.db"
	require.Equal(t, exitOK, b.run(t, "column", "list"))
	require.Regexp(t, `IVCE_TRKG_MSTR\s+DTL_ID\s+key`, b.out)
	require.Regexp(t, `IVCE_DTL\s+IVCE_DTL_UID\s+key`, b.out)
	require.Equal(t, exitOK, b.run(t, "column", "list", file))
	require.Contains(t, b.out, "OF_THE_FILE", "a flag comes first")

	b.env["MAPPING"] = filepath.Join(b.dir, "nowhere.json")
	require.Equal(t, exitFailed, b.run(t, "column", "list"))
	require.Contains(t, b.errors, "MAPPING")
	write("environment.json", func(tables map[invoice.Table]*mapping.Table) {
		tables[invoice.Detail].Column("UPC_CD")["type"] = "text"
	})
	b.env["MAPPING"] = filepath.Join(b.dir, "environment.json")
	require.Equal(t, exitFailed, b.run(t, "column", "list"))
	require.Contains(t, b.errors, "IVCE_DTL.UPC_CD")
}

// real is a bench with a Cosmos DB emulator, a SQLite file, and the app over both.
type real struct {
	*bench
	served    *served
	server    *cosmosdb.Server
	documents *cosmos.Container
	store     *sqlite.Store
}

func newReal(t *testing.T) *real {
	t.Helper()
	r := &real{bench: newBench(t)}
	server := cosmosdbtest.Start(t)
	t.Cleanup(r.stop)
	r.server = server.Server
	path := filepath.Join(r.dir, "x.db")
	r.store = sqlitetest.Open(t, path, sqlite.Options{})
	var err error
	r.documents, err = cosmos.Open(
		cosmos.Options{Connection: server.ConnectionString, Database: "invoices", Container: "AI_PROCESS_LOGS"})
	require.NoError(t, err)
	t.Cleanup(r.documents.Close)
	server.Results(t, "invoices", "AI_PROCESS_LOGS")
	server.Container(t, "invoices", "sqlwriter-control", "/id")
	server.Leases(t, "invoices", "leases")
	r.env["COSMOS_CONNECTION"], r.env["COSMOS_DATABASE"] = server.ConnectionString, "invoices"
	r.env["SQL_CONNECTION"] = "sqlite:" + path
	return r
}

func (r *real) line(t *testing.T, id int64) {
	t.Helper()
	_, err := r.store.Writer().ExecContext(t.Context(),
		`INSERT INTO IVCE_DTL (IVCE_DTL_UID, CLN_MFR_AI_NM) VALUES (?, 'OLD')`, id)
	require.NoError(t, err)
}

func TestSubmit(t *testing.T) {
	r := newReal(t)
	require.Equal(t, exitOK, r.run(t, "document", "submit", example), r.errors)
	require.Contains(t, r.out, exampleID)
	require.Contains(t, r.errors, "connections: the environment")
	require.NotContains(t, r.errors+r.out, "AccountKey")

	require.Equal(t, exitFailed, r.run(t, "document", "submit", example))
	require.Contains(t, r.errors, "exists; --replace")
	require.Equal(t, exitOK, r.run(t, "document", "submit", "--replace", example))

	for name, text := range map[string]string{"not JSON": `{`, "a list": `[]`, "no id": `{"request_details":{}}`} {
		r.stdin = text
		require.Equal(t, exitFailed, r.run(t, "document", "submit", "-"), name)
		require.Contains(t, r.errors, "not a document")
	}
	r.stdin = `{"id":"deep","request_details":` + strings.Repeat("[", 63) + strings.Repeat("]", 63) + `}`
	require.Equal(t, exitFailed, r.run(t, "document", "submit", "-"))
	require.Contains(t, r.errors, "document.too_deep")
	_, err := r.documents.Read(t.Context(), "deep")
	require.True(t, fault.Has(err, fault.Gone), "%v", err)
	require.Equal(t, exitFailed,
		r.run(t, "document", "submit", "nowhere.json", "../../examples/09-value-too-long.json"))
	require.Contains(t, r.errors, "1 of 2 documents were not submitted")
	require.Contains(t, r.errors, "it cannot commit", "one bad file keeps nobody out, and trouble is foretold")
	require.Contains(t, r.errors, "process_output.part_number")
}
