package main

import (
	"encoding/json"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"sqlwriter/internal/config"
	"sqlwriter/internal/cosmos"
	"sqlwriter/test/emulators/cosmosdb"
	"sqlwriter/test/emulators/cosmosdb/cosmosdbtest"
	"sqlwriter/test/expect"
	"sqlwriter/test/sample"
)

func TestTheLocalSettingsAreGoodSettings(t *testing.T) {
	values, err := localSettings(addresses{cosmos: "127.0.0.1:9", blob: "127.0.0.1:8", bus: "127.0.0.1:7"},
		"sqlite:/x/sqlwriter.db")
	require.NoError(t, err)
	c, err := config.Load(func(name string) (string, bool) { v, ok := values[name]; return v, ok })
	require.NoError(t, err)
	require.Equal(t, "web", c.SysName)
	require.Equal(t, "sqlite:/x/sqlwriter.db", c.SQL.Connection.Reveal())
	require.Contains(t, c.Cosmos.Connection.Reveal(), "AccountEndpoint=http://127.0.0.1:9/;")
	require.Contains(t, values["AzureWebJobsStorage"], "BlobEndpoint=http://127.0.0.1:8/devstoreaccount1;")

	require.Contains(t, c.ServiceBus.Connection.Reveal(), "Endpoint=sb://127.0.0.1:7;")

	path := filepath.Join(t.TempDir(), "s.json")
	require.NoError(t, writeSettings(path, values))
	read, err := readSettings(path)
	require.NoError(t, err)
	require.Equal(t, values, read)
	info, err := os.Stat(path)
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o600), info.Mode().Perm())
}

func TestMissingToolsAreOneLine(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	err := prerequisites()
	require.EqualError(t, err,
		"not on the PATH: Go 1.26 (go.dev/dl), Node.js 20 or later (nodejs.org), npm (comes with Node.js)")
}

func TestNothingIsInstalledTwice(t *testing.T) {
	root := t.TempDir()
	installed := filepath.Join(root, azuriteDir, "node_modules", ".package-lock.json")
	require.NoError(t, os.MkdirAll(filepath.Dir(installed), 0o750))
	lock := filepath.Join(root, azuriteDir, "package-lock.json")
	require.NoError(t, os.WriteFile(lock, nil, 0o600))
	require.NoError(t, os.WriteFile(installed, nil, 0o600))
	now := time.Now()
	require.NoError(t, os.Chtimes(lock, now, now.Add(-time.Second)))
	t.Setenv("PATH", t.TempDir()) // npm cannot be found
	require.NoError(t, installNPM(t.Context(), root, azuriteDir, "80 MB", &phases{}))
	require.NoError(t, os.Chtimes(lock, now, now.Add(time.Hour)))
	require.ErrorContains(t, installNPM(t.Context(), root, azuriteDir, "80 MB", &phases{}), "npm ci",
		"another lock file means another installation")
}

func TestALongStartSaysWhatItWaitsFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var p phases
		var said []string
		stop := p.say(func(after time.Duration, running string) { said = append(said, after.String()+" "+running) })
		require.NoError(t, p.time("npm", func() error {
			return p.time("build", func() error {
				time.Sleep(7 * time.Second)
				return nil
			})
		}))
		require.NoError(t, p.time("host", func() error {
			time.Sleep(4 * time.Second)
			return nil
		}))
		stop()
		synctest.Wait()
		require.Equal(t, []string{"5s npm, build", "10s host"}, said)
	})
}

func TestPercentilesAreOfTheNearestRank(t *testing.T) {
	var d []time.Duration
	for i := range 200 {
		d = append(d, time.Duration(i+1))
	}
	require.Equal(t, time.Duration(100), percentile(d, 50))
	require.Equal(t, time.Duration(198), percentile(d, 99))
	require.Equal(t, time.Duration(200), percentile(d, 100))
	require.Equal(t, time.Duration(7), percentile([]time.Duration{7}, 50))
	require.Zero(t, percentile(nil, 99))
}

// newDrain makes a drain on a Cosmos DB emulator, without the other servers.
func newDrain(t *testing.T, docs []sample.Document) *drain {
	t.Helper()
	server := cosmosdbtest.Start(t, func(o *cosmosdb.Options) { o.Key = cosmosKey })
	documents, err := cosmos.Open(cosmos.Options{Connection: server.ConnectionString, Database: "d", Container: "c"})
	require.NoError(t, err)
	t.Cleanup(documents.Close)
	server.Results(t, "d", "c")
	w, err := newWatcher(server.URL, "d", "c")
	require.NoError(t, err)
	return &drain{
		stack: &stack{documents: documents, watch: w}, docs: docs, sent: map[string]time.Time{},
		took: map[string]time.Duration{},
	}
}

func example(name, id, status string) sample.Document {
	return sample.Document{
		Name: name, ID: id, JSON: json.RawMessage(`{"id":"` + id + `","sql_writer":{"status":"` + status + `"}}`),
		Want: expect.Want{Status: "committed", Outcomes: []string{"unchanged"}},
	}
}

func TestTheWatcherSeesChangesAndWakesItsWaiters(t *testing.T) {
	d := newDrain(t, nil)
	follow, err := d.watch.start(t.Context())
	require.NoError(t, err)
	ended := make(chan error, 1)
	go func() { ended <- follow() }()

	began := time.Now()
	require.NoError(t, d.documents.Submit(t.Context(), example("a", "1", "pending").JSON, false))
	require.NoError(t, d.documents.Submit(t.Context(), example("b", "2", "committed").JSON, false))
	s, err := d.watch.wait(t.Context(), "2", "")
	require.NoError(t, err)
	require.Equal(t, "committed", s.status)
	require.WithinRange(t, s.at, began, time.Now())

	require.NoError(t, d.documents.Submit(t.Context(), example("b", "2", "failed").JSON, true))
	again, err := d.watch.wait(t.Context(), "2", s.etag)
	require.NoError(t, err)
	require.Equal(t, "failed", again.status, "another version than the one seen before")
}

func TestAnInvalidConnectionIsRefusedAtOnce(t *testing.T) {
	require.NoError(t, checkConnection(""))
	require.NoError(t, checkConnection("sqlserver://sa:p@db?database=x"))
	for connection, want := range map[string]string{
		"sqlite:x.db": "a SQLite file of its own", "server=db;password=hunter2": "another text of 26 characters",
		"sqlserver://sa:hunter2@db": "no database",
	} {
		err := checkConnection(connection)
		require.ErrorContains(t, err, want)
		require.NotContains(t, err.Error(), "hunter2")
	}
	p := start(t, "run", "--state="+t.TempDir(), "--sql=sqlserver://sa:hunter2@db")
	require.Equal(t, exitFailed, p.exit(t, time.Minute))
	require.Contains(t, p.output(), "no database")
	require.NotContains(t, p.output(), "hunter2")
}

// The command in the README must fit the compose file.
func TestTheReadmesConnectionFitsTheComposeFile(t *testing.T) {
	readme, err := os.ReadFile("../../README.md")
	require.NoError(t, err)
	compose, err := os.ReadFile("../../deploy/local/compose.yaml")
	require.NoError(t, err)
	dsn := regexp.MustCompile(`SQL_CONNECTION='(sqlserver://[^']+)'`).FindSubmatch(readme)
	require.NotNil(t, dsn)
	require.NoError(t, checkConnection(string(dsn[1])))
	_, err = databaseOf(string(dsn[1]))
	require.NoError(t, err)
	u, err := url.Parse(string(dsn[1]))
	require.NoError(t, err)
	password, _ := u.User.Password()
	require.Contains(t, string(compose), "MSSQL_SA_PASSWORD: "+password+"\n")
	require.Contains(t, string(compose), `"`+u.Host+`:1433"`)
	require.NotContains(t, string(compose), `"0.0.0.0:`)
}

func TestSystemDatabasesAreRefused(t *testing.T) {
	name, err := databaseOf("sqlserver://sa:p@db:1433?Database=my%20own&encrypt=true")
	require.NoError(t, err)
	require.Equal(t, "my own", name)
	for _, own := range []string{"master", "MSDB", "model", "tempdb"} {
		_, err := databaseOf("sqlserver://sa:hunter2@db?database=" + own)
		require.ErrorContains(t, err, "a system database")
		require.NotContains(t, err.Error(), "hunter2")
	}
	require.Equal(t, "sqlserver://sa:p%21@db:1433?database=master&encrypt=true",
		withDatabase("sqlserver://sa:p%21@db:1433?Database=x&encrypt=true", "master"))
	require.Equal(t, "db:1433", hostOf("sqlserver://sa:hunter2@db:1433?database=x"))
}

func TestEveryNameOfTheSamplesIsUnique(t *testing.T) {
	docs, err := samples()
	require.NoError(t, err)
	names := map[string]bool{}
	for _, d := range docs {
		require.False(t, names[d.Name], d.Name)
		names[d.Name] = true
	}
	require.Equal(t, "01-plain-success.json", docs[0].Name, "the one that is shown")
}

func TestTheProxyStandsForTheServerThatIsNamed(t *testing.T) {
	for dsn, want := range map[string]string{
		"sqlserver://sa:p@db?database=x":                        "db:1433",
		"sqlserver://sa:p@db:1500?database=x":                   "db:1500",
		"sqlserver://sa:p@db:1500/named?database=x":             "db:1500",
		"sqlserver://sa:p@db/named?database=x":                  "",
		"sqlserver://sa:p@x.database.windows.net?database=x":    "",
		"sqlserver://sa:p@[::1]:1433?database=x&encrypt=strict": "[::1]:1433",
	} {
		require.Equal(t, want, addressOf(dsn), dsn)
	}
	require.Equal(t, "sqlserver://sa:p%21@127.0.0.1:9?database=x&hostNameInCertificate=db",
		through("sqlserver://sa:p%21@db:1500?database=x", "127.0.0.1:9"))
	require.Equal(t, "sqlserver://sa:p@127.0.0.1:9?HostNameInCertificate=own&database=x",
		through("sqlserver://sa:p@db?HostNameInCertificate=own&database=x", "127.0.0.1:9"))
}

func TestATableIsAligned(t *testing.T) {
	var said strings.Builder
	(&output{w: &said}).table([][]string{{"column", "old"}, {"Ä", "NULL"}, {"UPC_CD ", `"1"`}})
	require.Equal(t, "  column   old\n  -------  ----\n  Ä        NULL\n  UPC_CD   \"1\"\n", said.String())
}
