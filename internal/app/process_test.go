package app

import (
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"sqlwriter/internal/store/sqlite"
	"sqlwriter/test/emulators/cosmosdb"
	"sqlwriter/test/emulators/servicebus"
	"sqlwriter/test/logcheck"
	"sqlwriter/test/mapping"
)

// These tests run the real binary.

func TestItAnswersBeforeAnythingSlow(t *testing.T) {
	t.Parallel()
	slow, err := net.Listen("tcp", "127.0.0.1:0") // it takes connections and answers nothing
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, slow.Close()) })
	p := start(t, map[string]string{
		"COSMOS_CONNECTION": "AccountEndpoint=http://" + slow.Addr().String() + "/;AccountKey=a2V5;",
		"COSMOS_DATABASE":   "d", "COSMOS_CONTAINER": "c",
		"LEASE_CONTAINER": "l", "LEASE_PREFIX": "web-", "SQL_CONNECTION": "sqlite:/nowhere/at/all.db",
		"AzureWebJobsStorage":   "UseDevelopmentStorage=true",
		"SERVICEBUS_CONNECTION": servicebus.ConnectionString("127.0.0.1:9"), "RUNS_QUEUE": "sqlwriter-web-runs",
		"BATCHES_QUEUE": "sqlwriter-web-batches",
	})
	asked, err := slow.Accept()
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, asked.Close()) })
	status, body := p.health()
	require.Equal(t, "503", status)
	require.Contains(t, fmt.Sprint(body["problems"]), "cosmos: not open yet", "it answers while Cosmos DB lets it wait")
}

func TestUnsetSettingsAreAllNamedAndItKeepsAnswering(t *testing.T) {
	t.Parallel()
	p := start(t, map[string]string{"TIME_ZONE": "Mars", "SQL_CONNECTION": "sqlserver:sa:password-marker@db"})
	status, body := p.health()
	require.Equal(t, "503", status)
	require.Equal(t, "live", body["status"])
	problems := fmt.Sprint(body["problems"])
	for _, name := range []string{
		"TIME_ZONE", "SQL_CONNECTION", "COSMOS_CONNECTION", "COSMOS_DATABASE", "COSMOS_CONTAINER", "LEASE_CONTAINER",
		"LEASE_PREFIX", "BLOB_CONNECTION", "SERVICEBUS_CONNECTION", "RUNS_QUEUE", "BATCHES_QUEUE",
	} {
		require.Contains(t, problems, name)
	}
	require.Contains(t, problems, "expected sqlserver://... or sqlite:PATH, found sqlserver: without //")
	code, text := p.send(http.MethodPost, "/CommitResults", envelope(t, nil))
	require.Equal(t, http.StatusServiceUnavailable, code, "the feed waits until the settings are put right")
	require.Contains(t, text, `"code":"settings"`)
	code, _ = p.send(http.MethodGet, "/", nil)
	require.Equal(t, http.StatusOK, code)
	require.NotContains(t, p.stdout.String()+problems+text, "password-marker")
}

func TestTheAdaptersProblemsAreReportedWithoutValues(t *testing.T) {
	t.Parallel()
	p := start(t, map[string]string{
		"TIME_ZONE": "Mars", "LOG_LEVEL": "value-marker", "COSMOS_DATABASE": "d",
		"COSMOS_CONTAINER": "c", "LEASE_CONTAINER": "l",
		"LEASE_PREFIX": "web-", "SQL_CONNECTION": "sqlserver://sa:key-marker@db.example",
		"MAPPING":           "value-marker.json",
		"COSMOS_CONNECTION": "AccountEndpoint=http://cosmos.example/;AccountKey=key-marker!;",
		// secrets that were pasted into the wrong setting
		"MODE": "value-marker", "SQL_SCHEMA": " value-marker", "RUNS_QUEUE": "value-marker",
		"BATCHES_QUEUE": "value-marker", "UI_AUTH": "value-marker", "UI_ORIGIN": "value-marker",
		"RECONCILE_AT": "value-marker", "SQL_MAX_OPEN": "value-marker", "SQL_CERTIFICATE": "value-marker",
		"RETENTION_DAYS": "value-marker",
	})
	_, body := p.health()
	problems := fmt.Sprint(body["problems"])
	for _, problem := range []string{
		"TIME_ZONE", "LOG_LEVEL", "COSMOS_CONNECTION", "SQL_CONNECTION", "no database", "MAPPING", "no such file",
	} {
		require.Contains(t, problems, problem)
	}
	require.NotContains(t, problems, "value-marker", "Health is anonymous: it repeats no value")
	require.Contains(t, p.stdout.String(), "RUNS_QUEUE: expected ")
	require.NotContains(t, p.stdout.String(), "value-marker", "the log goes to who reads logs")
	require.NotContains(t, p.stdout.String()+problems, "key-marker")
}

func TestHealthNamesAServerThatNobodyChecks(t *testing.T) {
	t.Parallel()
	s := newStack(t)
	s.settings["SQL_CERTIFICATE"] = "any"
	p := start(t, s.settings)
	p.waitReady()
	_, body := p.health()
	require.Equal(t, []any{"SQL_CERTIFICATE is any: nobody checks whose server SQL_CONNECTION leads to"}, body["problems"])
}

func TestTheTimerProcessesDueDocuments(t *testing.T) {
	t.Parallel()
	s := newStack(t)
	p := start(t, s.settings)
	p.waitReady()
	tick := []byte(
		`{"Data":{"timer":{"Schedule":{"AdjustForDST":true},"ScheduleStatus":null,"IsPastDue":false}},"Metadata":{"sys":{"MethodName":"RecoverRetries"}}}`)
	s.exec(
		`CREATE TABLE beats (number); CREATE TRIGGER beat AFTER UPDATE ON sqlwriter_heartbeat BEGIN INSERT INTO beats VALUES (new.number); END`)
	code, _ := p.send(http.MethodPost, "/RecoverRetries", tick)
	require.Equal(t, http.StatusOK, code)
	require.Equal(t, 1, s.count(`SELECT count(*) FROM beats`), "a tick raises the heartbeat once")

	s.submit(1, 4, "")
	s.patchAll(`{"status":"retry_scheduled","retry_count":1}`)
	code, text := p.send(http.MethodPost, "/RecoverRetries", tick)
	require.Equal(t, http.StatusOK, code)
	require.Contains(t, text, "took up 3 documents: 3 applied")
	require.Equal(t, 3, s.count(`SELECT count(*) FROM IVCE_DTL WHERE CLN_MFR_PRT_NUM = 'AB-' || IVCE_DTL_UID`))
	require.Eventually(t, func() bool {
		return strings.Contains(p.stdout.String(), `"function":"RecoverRetries"`) &&
			strings.Contains(p.stdout.String(), `"found":{"blamed":3}`)
	}, patience, 5*time.Millisecond)
}

func TestABatchArrivesInSQLAndHealthKnowsTheDependencies(t *testing.T) {
	t.Parallel()
	s := newStack(t)
	p := start(t, s.settings)
	p.waitReady()
	code, text := p.send(http.MethodPost, "/CommitResults", envelope(t, s.submit(1, 11, "payload-marker")))
	require.Equal(t, http.StatusOK, code)
	require.Contains(t, text, "10 documents: 10 applied")
	require.Equal(t, 10, s.count(`SELECT count(*) FROM IVCE_DTL WHERE CLN_MFR_PRT_NUM = 'AB-' || IVCE_DTL_UID`))
	_, body := p.health()
	require.Equal(t, "/request_details/id", body["partition_key"], "as the container's definition has it")
	require.Equal(t, "ok", body["dependencies"].(map[string]any)["cosmos"].(map[string]any)["state"])
	require.Equal(t, "ok", body["dependencies"].(map[string]any)["sql"].(map[string]any)["state"])

	batch := envelope(t, s.submit(11, 12, ""))
	fault, err := s.cosmos.Server.AddFault(cosmosdb.Rule{Op: cosmosdb.OpPatch, Status: http.StatusForbidden})
	require.NoError(t, err)
	code, _ = p.send(http.MethodPost, "/CommitResults", batch)
	require.Equal(t, http.StatusServiceUnavailable, code)
	status, body := p.health()
	require.Equal(t, "200", status, "another instance would not heal Cosmos")
	require.Equal(t, "failing", body["dependencies"].(map[string]any)["cosmos"].(map[string]any)["state"])
	require.Equal(t, "infrastructure", body["dependencies"].(map[string]any)["cosmos"].(map[string]any)["kind"])
	s.cosmos.Server.RemoveFault(fault)
	code, text = p.send(http.MethodPost, "/CommitResults", batch)
	require.Equal(t, http.StatusOK, code)
	require.Contains(t, text, "1 unchanged")
	key := strings.TrimSuffix(strings.SplitN(s.settings["COSMOS_CONNECTION"], "AccountKey=", 2)[1], ";")
	for _, secret := range []string{"payload-marker", key, "ACME"} {
		require.NotContains(t, p.stdout.String(), secret)
	}
}

func TestTheTablesMayHaveOtherNames(t *testing.T) {
	t.Parallel()
	s := newStack(t)
	s.settings["MAPPING"] = filepath.Join(t.TempDir(), "mapping.json")
	require.NoError(t, os.WriteFile(s.settings["MAPPING"], mapping.File(mapping.Rename), 0o600))
	p := start(t, s.settings)
	require.Eventually(t, func() bool {
		status, body := p.health()
		return status == "503" && strings.Contains(fmt.Sprint(body["problems"]), "REQUEST_TIME")
	}, patience, 20*time.Millisecond, "the table is still the old one, and Health says what it lacks")
	s.exec(`ALTER TABLE IVCE_TRKG_MSTR RENAME COLUMN RQST_TS TO REQUEST_TIME`)
	p.waitReady()
	code, text := p.send(http.MethodPost, "/CommitResults", envelope(t, s.submit(1, 3, "")))
	require.Equal(t, http.StatusOK, code)
	require.Contains(t, text, "2 applied")
	require.Equal(t, 2, s.count(`SELECT count(*) FROM IVCE_TRKG_MSTR WHERE REQUEST_TIME LIKE '2025-12-17T16:30:15%'`))

	_, body := p.health()
	require.Equal(t, fmt.Sprintf("mapping.json, version %d", mapping.Renamed().Version()), body["mapping"])
	const other = "other_mapping: the app writes by another mapping"
	require.Contains(t, fmt.Sprint(body["problems"]), other, "nobody chose it, and the start does not")
	store, err := sqlite.Open(t.Context(), s.path, sqlite.Options{Mapping: mapping.Renamed()})
	require.NoError(t, err)
	require.NoError(t, store.Migrate(t.Context()))
	require.NoError(t, store.Close())
	_, reply := p.ask(http.MethodGet, "status", "")
	require.Equal(t, body["mapping"], reply["mapping"])
	require.NotContains(t, fmt.Sprint(reply["attention"]), "other_mapping")
	_, body = p.health()
	require.NotContains(t, fmt.Sprint(body["problems"]), other, "it was chosen on purpose")
}

func TestALeaseContainerWithoutATimeToLiveIsToldAndStopsNothing(t *testing.T) {
	t.Parallel()
	s := newStack(t)
	s.cosmos.Container(t, "invoices", "old-leases", "/id")
	s.cosmos.Container(t, "invoices", "keyed-leases", "/owner")
	for line, c := range []struct{ name, want string }{
		{
			"old-leases",
			"az cosmosdb sql container update --resource-group GROUP --account-name ACCOUNT --database-name DATABASE --name LEASE_CONTAINER --ttl -1",
		},
		{
			"keyed-leases",
			"leases: cosmos: read partition key: infrastructure partition_key: container keyed-leases has the partition key \"/owner\": it must be /id",
		},
		{"no-leases", "leases: cosmos: read definition: infrastructure 404"},
	} {
		s.settings["LEASE_CONTAINER"] = c.name
		p := start(t, s.settings)
		p.waitReady()
		require.Eventually(t, func() bool {
			status, body := p.health()
			return status == "200" && strings.Contains(fmt.Sprint(body["problems"]), c.want)
		}, patience, 20*time.Millisecond, c.name)
		code, text := p.send(http.MethodPost, "/CommitResults", envelope(t, s.submit(line+1, line+2, "")))
		require.Equal(t, http.StatusOK, code)
		require.Contains(t, text, "1 applied")
	}
}

func TestAPartitionKeyThatCannotBeUsedIsRefusedAtTheStart(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		change func(s *stack)
		want   string
	}{
		"results": {func(s *stack) {
			s.cosmos.Container(t, "invoices", "refused", "/sql_writer/shard")
			s.settings["COSMOS_CONTAINER"] = "refused"
		}, `container refused has the partition key "/sql_writer/shard": the app writes sql_writer`},
		"control": {func(s *stack) {
			control, err := s.cosmos.Client.NewContainer("invoices", "sqlwriter-control")
			require.NoError(t, err)
			_, err = control.Delete(t.Context(), nil)
			require.NoError(t, err)
			s.cosmos.Container(t, "invoices", "sqlwriter-control", "/owner")
		}, `container sqlwriter-control has the partition key "/owner": it must be /id`},
	} {
		s := newStack(t)
		c.change(s)
		batch := envelope(t, s.submit(1, 2, ""))
		p := start(t, s.settings)
		require.Eventually(t, func() bool {
			status, body := p.health()
			return status == "503" && strings.Contains(fmt.Sprint(body["problems"]), c.want)
		}, patience, 20*time.Millisecond, name)
		code, text := p.send(http.MethodPost, "/CommitResults", batch)
		require.Equal(t, http.StatusServiceUnavailable, code, text)
		require.Zero(t, s.count("SELECT count(*) FROM IVCE_TRKG_MSTR"), "nothing is written to SQL")
	}
}

func TestSIGTERMLetsRunningInvocationsFinish(t *testing.T) {
	t.Parallel()
	s := newStack(t)
	p := start(t, s.settings)
	p.waitReady()
	code, _ := p.send(http.MethodPost, "/CommitResults", envelope(t, s.submit(3, 4, "")))
	require.Equal(t, http.StatusOK, code)
	hold, err := s.cosmos.Server.AddFault(cosmosdb.Rule{Op: cosmosdb.OpPatch, Hold: cosmosdb.Before, Times: 1})
	require.NoError(t, err)
	batch := envelope(t, s.submit(1, 3, ""))
	answered := make(chan string, 1)
	go func() {
		text, err := p.post("/CommitResults", batch)
		if err != nil {
			text = "no answer: " + err.Error()
		}
		answered <- text
	}()
	require.NoError(t, s.cosmos.Server.WaitHeld(t.Context(), hold, 1))
	require.NoError(t, p.cmd.Process.Signal(syscall.SIGTERM))
	require.Eventually(t, func() bool {
		conn, err := net.DialTimeout("tcp", p.address(), time.Second)
		if err == nil {
			_ = conn.Close() // the process still listens
		}
		return err != nil
	}, patience, 5*time.Millisecond, "no new invocations")
	require.Empty(t, answered)
	s.cosmos.Server.RemoveFault(hold)
	require.Contains(t, <-answered, "2 applied")
	require.Equal(t, 200, p.exitCode(),
		"0 would never be started again, anything else counts as an error (docs/facts.md F22)")
	require.Contains(t, p.stdout.String(), `"drained":true`)
	require.Equal(t, []int64{3}, s.committed(), "its last write counts what it committed")
}

func TestWithoutItsPortItSaysWhyAndExitsWith1(t *testing.T) {
	t.Parallel()
	taken := httptest.NewServer(nil)
	t.Cleanup(taken.Close)
	_, port, err := net.SplitHostPort(taken.Listener.Addr().String())
	require.NoError(t, err)
	for env, want := range map[string]string{
		"X=1":                                  "FUNCTIONS_CUSTOMHANDLER_PORT: expected a port number",
		"FUNCTIONS_CUSTOMHANDLER_PORT=70000":   "expected a port number, found",
		"FUNCTIONS_CUSTOMHANDLER_PORT=" + port: "cannot listen",
		"FUNCTIONS_HTTPWORKER_PORT=" + port:    "cannot listen", // the old name is read
	} {
		cmd := exec.Command(binary(t))
		cmd.Env = []string{env}
		out, err := cmd.Output()
		var exit *exec.ExitError
		require.ErrorAs(t, err, &exit, env)
		require.Equal(t, ExitFailed, exit.ExitCode())
		require.Empty(t, out, "an error belongs on stderr (docs/facts.md F26)")
		logcheck.Lines(t, exit.Stderr)
		require.Contains(t, string(exit.Stderr), want)
	}
}
