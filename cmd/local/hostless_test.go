package main

import (
	"database/sql"
	"io"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/rs/zerolog"
	"github.com/stretchr/testify/require"

	"sqlwriter/cmd/stage/staging"
	"sqlwriter/internal/app/open"
	"sqlwriter/internal/store/sqlite"
	"sqlwriter/test/emulators/funchost"
	"sqlwriter/test/sample"
)

// TestAHostOverTheServersNeedsTheStagedFolderOnly is `make servers`, `make stage` and `func start` in .stage: the host
// gets the folder and nothing else. A document that is put arrives in SQL.
func TestAHostOverTheServersNeedsTheStagedFolderOnly(t *testing.T) {
	wholeStack(t)
	state, root := t.TempDir(), filepath.Join(t.TempDir(), "root")
	p := start(t, "servers", "--state="+state)
	p.waitFor(t, "the servers are running")
	servers := below(t, p.cmd.Process.Pid)
	require.Len(t, servers, 3, "no host")

	require.NoError(t, staging.Build(t.Context(), staging.Options{Source: "../..", Dir: root, State: state}))
	list(t, root)
	// From here on the folder is all that the host knows.
	settings, err := readSettings(filepath.Join(root, "local.settings.json"))
	require.NoError(t, err)
	require.Equal(t, "Gateway", settings["AzureFunctionsJobHost__extensions__cosmosDB__connectionMode"])
	host := funchost.New(
		funchost.Options{ScriptRoot: root, Settings: settings, Env: funchost.PlainEnv(), Log: zerolog.Nop()})
	require.NoError(t, host.Start(t.Context()))
	t.Cleanup(func() { _ = host.Stop() }) // it stops below if the test passes
	require.NoError(t,
		answers(t.Context(), "http://"+host.Address()+"/api/health", func(status int) bool {
			return status == http.StatusOK
		}))

	docs, err := sample.Examples()
	require.NoError(t, err)
	results, err := open.Results(configOf(settings).Cosmos)
	require.NoError(t, err)
	t.Cleanup(results.Close)
	began := time.Now()
	require.NoError(t, results.Submit(t.Context(), docs[0].JSON, false))
	db, err := sqlite.Open(t.Context(), strings.TrimPrefix(settings["SQL_CONNECTION"], sqlite.Scheme), sqlite.Options{})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, db.Close()) })
	const written = "SELECT count(*) FROM IVCE_DTL WHERE IVCE_DTL_UID = 1421549 AND CLN_MFR_AI_NM = 'THOMAS & BETTS' AND CLN_MFR_PRT_NUM = '425'"
	require.Eventually(t, func() bool { return count(t, db.Reader(), written) == 1 }, time.Minute, 10*time.Millisecond)
	require.NotContains(t, health(t, host.Address()), "leases", "the lease container has a time to live")
	t.Logf("the row is there %.2f s after its document", time.Since(began).Seconds())

	require.NoError(t, host.Stop())
	require.NoError(t, p.cmd.Process.Signal(os.Interrupt))
	require.Equal(t, exitOK, p.exit(t, time.Minute))
	requireGone(t, servers)
}

// health returns the reply of Health.
func health(t *testing.T, address string) string {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+address+"/api/health", http.NoBody)
	require.NoError(t, err)
	resp, err := http.DefaultClient.Do(req)
	require.NoError(t, err)
	defer func() { require.NoError(t, resp.Body.Close()) }()
	body, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	return string(body)
}

// list logs a folder as it was written.
func list(t *testing.T, dir string) {
	t.Helper()
	require.NoError(t, filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		name, err := filepath.Rel(dir, path)
		t.Logf("%s %9d %s", info.Mode(), info.Size(), name)
		return err
	}))
}

func count(t *testing.T, db *sql.DB, query string) int {
	t.Helper()
	var n int
	if err := db.QueryRowContext(t.Context(), query).Scan(&n); err != nil {
		return 0 // the database is locked, or does not exist yet
	}
	return n
}
