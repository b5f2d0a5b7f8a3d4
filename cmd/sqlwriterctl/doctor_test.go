package main

import (
	"cmp"
	"context"
	"encoding/base64"
	"encoding/json"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"sqlwriter/cmd/internal/stackfile"
	"sqlwriter/internal/config"
	"sqlwriter/internal/ops"
	"sqlwriter/test/azuretest"
)

// patient is a deployment in which all is well, until a test breaks something.
type patient struct {
	*bench
	*azuretest.ARM

	azuretest.Deployment
	began time.Time
	app   http.Handler
	// healthStatus and healthBody are what Health answers, rows what the app says of itself.
	healthStatus int
	healthBody   string
	rows         []ops.DoctorRow
	rowsStatus   int
	rowsBody     string
	asked        int
}

func newPatient(t *testing.T) *patient {
	t.Helper()
	p := &patient{
		began: time.Now(), healthStatus: http.StatusOK, rowsStatus: http.StatusOK,
		healthBody: `{"status": "ready", "version": "v1.4.0", "problems": []}`,
	}
	for _, name := range []string{
		ops.DepSQL, ops.DepCosmos, ops.RowLeases, ops.DepServiceBus, ops.RowBlobs, ops.RowSignIn, ops.DepTimer,
	} {
		p.rows = append(p.rows, ops.DoctorRow{Name: name, State: ops.RowOK, Found: "as it is"})
	}
	p.rows[5].Found = "off: the platform's sign-in is not seen"
	app := azuretest.TLS(t, p.serve)
	p.app = app.Config.Handler
	p.ARM = azuretest.NewARM(t)
	p.Deployment = azuretest.Deployment{
		Subscription: p.ARM.Subscription, Group: "g", Site: "func-x", Host: strings.TrimPrefix(app.URL, "https://"),
		Client: "1111abcd-0000-4000-8000-000000000001", Principal: "22222222-0000-4000-8000-000000000002",
		Given: p.began.Add(-time.Hour), Published: p.began.Add(-time.Hour), Functions: theFunctions(),
	}
	p.Sites = []azuretest.Site{{
		ID: p.SiteID(), Host: p.Host, Keys: map[string]string{"operator-" + p.Person: "key-marker"},
		SignIn: `{"platform":{"enabled":false}}`,
	}}
	p.ARM.Resources, p.Others = p.Deployment.Resources(), p.Deployment.Answers()
	p.bench = newBench(t)
	p.http = p.ARM.Client()
	azuretest.Az(t, p.ARM.Answers(nil))
	return p
}

func (p *patient) serve(w http.ResponseWriter, r *http.Request) {
	switch r.URL.Path {
	case "/api/health":
		w.WriteHeader(p.healthStatus)
		_, _ = w.Write([]byte(p.healthBody))
	case "/api/ops/v1/doctor":
		p.asked++
		w.WriteHeader(p.rowsStatus)
		if p.rowsBody != "" {
			_, _ = io.WriteString(w, p.rowsBody)
			return
		}
		_ = json.NewEncoder(w).Encode(ops.DoctorAnswer{Rows: p.rows})
	default:
		w.WriteHeader(http.StatusNotFound)
	}
}

// diagnosed runs doctor, and returns its rows by name.
func (p *patient) diagnosed(t *testing.T, code int, args ...string) (diagnosis, map[string]ops.DoctorRow) {
	t.Helper()
	if len(args) == 0 {
		args = []string{"--app", "func-x"}
	}
	require.Equal(t, code, p.run(t, append([]string{"doctor", "-o", "json"}, args...)...), p.errors+p.out)
	var found diagnosis
	require.NoError(t, json.Unmarshal([]byte(p.out), &found))
	rows := map[string]ops.DoctorRow{}
	for _, row := range found.Rows {
		rows[row.Name] = row
	}
	return found, rows
}

// replaced is an answer with another text in it.
func (p *patient) replaced(t *testing.T, call, before, after string) {
	t.Helper()
	answer := p.Others[call]
	require.Contains(t, answer.Body, before)
	answer.Body = strings.Replace(answer.Body, before, after, 1)
	p.Others[call] = answer
}

func (p *patient) refused(call string, status int) {
	answer := p.Others[call]
	answer.Status, answer.Body = status, "x"
	p.Others[call] = answer
}

func (p *patient) set(name, value string) {
	settings := p.Settings()
	settings[name] = value
	if value == "" {
		delete(settings, name)
	}
	p.Others["POST /config/appsettings/list"] = p.SettingsOf(settings)
}

func TestDoctorFindsNothing(t *testing.T) {
	p := newPatient(t)
	found, rows := p.diagnosed(t, exitOK)
	require.Len(t, rows, len(doctorRows())-1, "the feed only with --send")
	require.Empty(t, found.Cause)
	for i, one := range doctorRows()[:len(rows)] {
		require.Equal(t, one.name, found.Rows[i].Name, "the order is that of dependence")
		require.Equal(t, ops.RowOK, found.Rows[i].State)
		require.Empty(t, found.Rows[i].Do)
	}
	require.Equal(t, "Storage Blob Data Owner; Azure Service Bus Data Owner; Cosmos DB Built-in Data Contributor; Monitoring Metrics Publisher",
		rows[rowRoles].Found)
	require.Equal(t, "all 9, none with an error", rows[rowFunctions].Found)
	at := p.began.Add(-time.Hour).Truncate(time.Second)
	require.Equal(t, "published "+at.UTC().Format(time.RFC3339), rows[rowPackage].Found)
	p.rows[6].Found = "the last tick was at " + at.In(time.FixedZone("", 3600)).Format(time.RFC3339)
	require.Equal(t, exitOK, p.run(t, "doctor", "--app", "func-x"), p.errors)
	require.Equal(t, 2, strings.Count(p.out, " "+at.In(chicago).Format(shownTime)), "one zone")
	require.Regexp(t, `(?m)^ROW +STATE +FOUND\nsite +ok +func-x, Flex Consumption, runtime custom 1\.0\n`, p.out)
	require.Equal(t, exitOK, p.run(t, "doctor", "--app", "func-x", "-q"))
	require.Empty(t, p.out)
	folders, err := filepath.Glob("../../functions/*/function.json")
	require.NoError(t, err)
	require.Len(t, folders, len(theFunctions()))
	for i, path := range folders {
		require.Equal(t, theFunctions()[i], filepath.Base(filepath.Dir(path)))
	}
}

// Must show: each thing broken once is that row, with its command. A row that could not be looked at is never ok.
func TestDoctorNamesWhatIsBroken(t *testing.T) {
	const host = "GET /host/default/properties/status"
	component := "/subscriptions/34adfa4f-cedf-4dc0-ba29-b6d1a69ab345/resourceGroups/g/providers/Microsoft.Insights/components/appi-x"
	without := func(right string) func(*testing.T, *patient) {
		return func(_ *testing.T, p *patient) { p.Denied = []string{"Microsoft." + right} }
	}
	setTo := func(name, value string) func(*testing.T, *patient) {
		return func(_ *testing.T, p *patient) { p.set(name, value) }
	}
	siteWith := func(before, after string) func(*testing.T, *patient) {
		return func(t *testing.T, p *patient) { t.Helper(); p.replaced(t, "GET ", before, after) }
	}
	answers := func(status int, body string) func(*testing.T, *patient) {
		return func(_ *testing.T, p *patient) { p.healthStatus, p.healthBody = status, body }
	}
	listed := func(names ...string) func(*testing.T, *patient) {
		return func(_ *testing.T, p *patient) { p.Others["GET /functions"] = p.FunctionsOf(names...) }
	}
	commands := map[string]bool{}
	for name, c := range map[string]struct {
		change     func(t *testing.T, p *patient)
		row, state string // state is wrong by default
		found, do  string
		cause      string
	}{
		"the app is stopped": {
			change: func(t *testing.T, p *patient) {
				t.Helper()
				siteWith("Running", "Stopped")(t, p)
				p.refused(host, 503)
			},
			row: rowSite, found: "the app is Stopped", do: "az functionapp start --ids /subscriptions/",
			cause: rowSite,
		},
		"another runtime": {
			change: siteWith("custom", "python"),
			row:    rowSite, found: "its runtime is python, not custom", do: "make azure GROUP=g",
		},
		"a setting is missing": {
			change: func(_ *testing.T, p *patient) { p.set(config.LeasePrefix, ""); p.rows[2].State = ops.RowWrong },
			row:    rowSettings, found: "LEASE_PREFIX: expected a value: the host reads it too", do: "make azure GROUP=g",
			cause: rowSettings,
		},
		"an answer without settings": {
			change: func(t *testing.T, p *patient) {
				t.Helper()
				answer := p.SettingsOf(nil)
				answer.Body = `{"properties": null}`
				p.Others["POST /config/appsettings/list"] = answer
			},
			row: rowSettings, found: "LEASE_PREFIX: expected a value", do: "make azure GROUP=g", cause: rowSettings,
		},
		"a setting that Flex refuses": {
			change: setTo("FUNCTIONS_WORKER_RUNTIME", "custom"),
			row:    rowSettings, found: "FUNCTIONS_WORKER_RUNTIME: take it out: the platform sets or refuses it", do: "make azure GROUP=g",
		},
		"a key of storage beside the identity": {
			change: setTo(storageSetting, "AccountName=stx;AccountKey=a2V5"),
			row:    rowSettings, found: "AzureWebJobsStorage: take it out: AzureWebJobsStorage__accountName is beside it",
			do: "make azure GROUP=g",
		},
		"no client id, and no identity of the app's own": {
			change: setTo(config.CosmosClientID, ""),
			row:    rowIdentity, do: "make azure GROUP=g",
			found: "COSMOS_CONNECTION__accountEndpoint needs an identity that the app does not have (it has 1)",
		},
		"sign-in by hand": {
			change: setTo(signInSetting, "true"),
			row:    rowSettings, found: signInSetting + ": take it out", do: "make azure GROUP=g",
		},
		"no right to see settings": {
			change: without("Web/sites/config/list/action"),
			row:    rowSettings, state: ops.RowNotLooked, found: "you need the right Microsoft.Web/sites/config/list/action at /sub",
			do: `az role assignment create --assignee 0b1f6471-1bf0-4dda-aec3-cb9272f09590 --role "Website Contributor" --scope /sub`,
		},
		"another identity": {
			change: setTo(config.CosmosClientID, "33333333-0000-4000-8000-000000000003"),
			row:    rowIdentity, do: "make azure GROUP=g",
			found: "COSMOS_CONNECTION__clientId needs an identity that the app does not have (it has 1)",
		},
		"no identity": {
			change: func(t *testing.T, p *patient) { t.Helper(); p.replaced(t, "GET ", p.Identity(), `"identity": null`) },
			row:    rowIdentity, found: "SQL_CONNECTION need an identity", do: "make azure GROUP=g", cause: rowIdentity,
		},
		"a role is missing": {
			change: func(t *testing.T, p *patient) {
				t.Helper()
				p.replaced(t, "GET "+p.Deployment.Resources()[0]+azuretest.RolesOf, "b7e6dc6d", "b7e6dc6e")
				p.replaced(t, host, `"Running"`, `"Error", "errors": ["403 This request is not authorized"]`)
			},
			row: rowRoles, found: "the identity lacks Storage Blob Data Owner at stx", cause: rowRoles,
			do: `az role assignment create --assignee-object-id 22222222-0000-4000-8000-000000000002 --assignee-principal-type ServicePrincipal --role "Storage Blob Data Owner" --scope /subscriptions/34adfa4f-cedf-4dc0-ba29-b6d1a69ab345/resourceGroups/g/providers/Microsoft.Storage/storageAccounts/stx`,
		},
		"the role of Cosmos DB is at another database": {
			change: func(t *testing.T, p *patient) {
				t.Helper()
				account := p.Deployment.Resources()[2]
				p.replaced(t, "GET "+account+"/sqlRoleAssignments", "/dbs/invoices", "/dbs/invoices2")
			},
			row: rowRoles, found: "the identity lacks Cosmos DB Built-in Data Contributor at the database invoices of cosmos-x. make azure gives it at the template's database, and sets all settings", do: "make azure GROUP=g",
		},
		"another principal has the role of Cosmos DB": {
			change: func(t *testing.T, p *patient) {
				t.Helper()
				account := p.Deployment.Resources()[2]
				p.replaced(t, "GET "+account+"/sqlRoleAssignments", p.Principal, "44444444-0000-4000-8000-000000000004")
			},
			row: rowRoles, state: ops.RowNotLooked, do: "make azure GROUP=g",
			found: "the identity itself lacks Cosmos DB Built-in Data Contributor at the database invoices of cosmos-x. Others have it (1): whether one of them is a group with the identity is not seen",
		},
		"an account of others gives no role": {
			change: func(t *testing.T, p *patient) {
				t.Helper()
				of := p.ARM.Resources[2]
				p.ARM.Resources[2] = strings.Replace(of, "/g/", "/theirs/", 1)
				answer := p.Others["GET "+of+"/sqlRoleAssignments"]
				answer.Body = `{"value": []}`
				p.Others["GET "+p.ARM.Resources[2]+"/sqlRoleAssignments"] = answer
			},
			row: rowRoles, found: "the identity lacks Cosmos DB Built-in Data Contributor at the database invoices of cosmos-x",
			do: "az cosmosdb sql role assignment create -g theirs -a cosmos-x --role-definition-id 00000000-0000-0000-0000-000000000002 --scope /dbs/invoices --principal-id 22222222-0000-4000-8000-000000000002",
		},
		"a Key Vault has the address of an account": {
			change: setTo(config.CosmosEndpoint, "@Microsoft.KeyVault(SecretUri=https://v.vault.azure.net/secrets/s)"),
			row:    rowRoles, state: ops.RowNotLooked,
			found: "COSMOS_CONNECTION__accountEndpoint refers to a Key Vault: what it names was not judged",
		},
		"roles are minutes old": {
			change: func(_ *testing.T, p *patient) {
				p.Given = p.began.Add(-3 * time.Minute)
				p.Others = p.Deployment.Answers()
			},
			row: rowRoles, state: ops.RowNotYet, found: "Storage Blob Data Owner was given 3m",
			do: "sqlwriterctl doctor --wait 5m --app func-x",
		},
		"a role is younger than this machine's clock": {
			change: func(_ *testing.T, p *patient) {
				p.Given = p.began.Add(5 * time.Minute)
				p.Others = p.Deployment.Answers()
			},
			row: rowRoles, state: ops.RowNotYet, found: "Storage Blob Data Owner was given 0s",
			do: "sqlwriterctl doctor --wait 5m --app func-x",
		},
		"a connection string of a Key Vault": {
			change: setTo(telemetry, "@Microsoft.KeyVault(SecretUri=https://v.vault.azure.net/secrets/s)"),
			row:    rowTelemetry, state: ops.RowNotLooked, found: telemetry + " refers to a Key Vault",
		},
		"an identity of a Key Vault": {
			change: setTo(config.CosmosClientID, "@Microsoft.KeyVault(SecretUri=https://v.vault.azure.net/secrets/s)"),
			row:    rowRoles, state: ops.RowNotLooked,
			found: config.CosmosEndpoint + " needs an identity that is in a Key Vault",
		},
		"a role is seconds old, and the host was refused": {
			change: func(t *testing.T, p *patient) {
				t.Helper()
				p.Given = p.began.Add(-3 * time.Second)
				p.Others = p.Deployment.Answers()
				p.replaced(t, host, `"Running"`, `"Error", "errors": ["403 This request is not authorized"]`)
			},
			row: rowHost, found: "the host is Error: 403", do: "az functionapp restart --ids /subscriptions/",
			cause: rowRoles,
		},
		"no right to see roles": {
			change: without("Authorization/roleAssignments/read"),
			row:    rowRoles, state: ops.RowNotLooked, found: "you need the right Microsoft.Authorization/roleAssignments/read at /sub",
			do: `az role assignment create --assignee 0b1f6471-1bf0-4dda-aec3-cb9272f09590 --role "Reader" --scope /subscriptions/`,
		},
		"an account of others": {
			change: func(_ *testing.T, p *patient) { p.ARM.Resources = p.ARM.Resources[:2] },
			row:    rowRoles, state: ops.RowNotLooked,
			found: "you see no resource in the app's subscription that COSMOS_CONNECTION__accountEndpoint names: the right is Microsoft.DocumentDB/databaseAccounts/read",
			do:    "az resource list -o table --resource-type Microsoft.DocumentDB/databaseAccounts",
		},
		"nothing was published": {
			change: func(_ *testing.T, p *patient) {
				p.Others["GET /deployments"] = azuretest.Answer{Version: "2024-11-01", Body: `{"value": []}`}
				p.Others["GET /functions"] = p.FunctionsOf()
			},
			row: rowPackage, found: "nothing was published: no deployment succeeded", do: "make publish APP=func-x",
			cause: rowPackage,
		},
		"a deployment failed": {
			change: func(t *testing.T, p *patient) {
				t.Helper()
				p.replaced(t, "GET /deployments", `"status": 4`, `"status": 3`)
			},
			row: rowPackage, found: "nothing was published: no deployment succeeded", do: "make publish APP=func-x",
		},
		"the host has an error": {
			change: func(t *testing.T, p *patient) {
				t.Helper()
				p.replaced(t, host, `"Running"`, `"Error", "errors": ["AI_PROCESS_LOGS: Did not find functions with language [custom]."]`)
			},
			row: rowHost, found: "the host is Error: (COSMOS_CONTAINER): Did not find functions with language [custom].",
			do: "az functionapp restart --ids /subscriptions/",
		},
		"the host does not answer": {
			change: func(_ *testing.T, p *patient) { p.refused(host, 503); p.healthStatus, p.healthBody = 503, "" },
			row:    rowHost, found: "the host does not answer", do: "az functionapp restart --ids /subscriptions/",
		},
		"the host does not answer, and the app does": {
			change: func(_ *testing.T, p *patient) { p.refused(host, 503) },
			row:    rowHost, state: ops.RowNotYet, found: "the host does not answer so far",
		},
		"the host starts": {
			change: func(t *testing.T, p *patient) {
				t.Helper()
				p.Published = p.began.Add(-time.Minute)
				p.Others = p.Deployment.Answers()
				p.replaced(t, host, "Running", "Initialized")
			},
			row: rowHost, state: ops.RowNotYet, found: "the host is Initialized so far",
		},
		"the host's words, and no right to see the values in them": {
			change: func(t *testing.T, p *patient) {
				t.Helper()
				p.Denied = []string{"Microsoft.Web/sites/config/list/action"}
				p.replaced(t, host, `"Running"`, `"Error", "errors": ["AI_PROCESS_LOGS"]`)
			},
			row: rowHost, found: "the host is Error: the host's words are not shown: they may have values of settings, which you may not read", do: "az functionapp restart",
			cause: rowHost,
		},
		"a function was left out": {
			change: listed(theFunctions()[1:]...),
			row:    rowFunctions, found: "the host left out BatchDeadLetter: the app's log says why", do: "make publish APP=func-x",
		},
		"functions are not listed yet": {
			change: func(_ *testing.T, p *patient) {
				p.Published = p.began.Add(-time.Minute)
				p.Others = p.Deployment.Answers()
				p.Others["GET /functions"] = p.FunctionsOf("Health")
			},
			row: rowFunctions, state: ops.RowNotYet, found: "not listed yet: BatchDeadLetter, BatchManager",
		},
		"a function has an error": {
			change: func(_ *testing.T, p *patient) {
				p.Others["GET /hostruntime/admin/functions/CommitResults/status"] = p.ErrorsOf("'%LEASE_PREFIX%' does not resolve to a value.")
			},
			row: rowFunctions, found: "CommitResults: '%LEASE_PREFIX%' does not resolve to a value.", do: "make azure GROUP=g",
		},
		"a function is disabled": {
			change: listed(append(theFunctions()[1:], "BatchDeadLetter disabled")...),
			row:    rowFunctions, found: "BatchDeadLetter is disabled", do: "make azure GROUP=g",
		},
		"the errors of functions were not seen": {
			change: without("Web/sites/hostruntime/functions/read"),
			row:    rowFunctions, state: ops.RowNotLooked, found: "all are listed, and their errors were not looked at: you need the right",
			do: "az role assignment create",
		},
		"Health is not ready": {
			change: answers(503, `{"status": "live", "version": "v1", "problems": ["settings: MODE: expected live"]}`),
			row:    rowHealth, found: "not ready, v1: settings: MODE: expected live",
			do: "sqlwriterctl status --check --app func-x",
		},
		"the app wakes": {
			change: answers(503, "Function host is not running."),
			row:    rowHealth, state: ops.RowNotYet, found: "Health answers 503 without a report: the app wakes, or the host starts no handler", do: "curl -sS https://",
			cause: rowHealth,
		},
		"another app": {
			change: answers(404, ""),
			row:    rowHealth, found: "Health answers 404", do: "make publish APP=func-x", cause: rowHealth,
		},
		"another program": {
			change: answers(200, `{"status": "Healthy"}`),
			row:    rowHealth, found: "Health answers 200, and not as the app does", do: "make publish APP=func-x",
		},
		"Health is ready, and knows of more": {
			change: answers(200, `{"status": "ready", "version": "v1", "problems": ["feed_missed: x"]}`),
			row:    rowHealth, found: "ready, v1: feed_missed: x", do: "sqlwriterctl status --check --app func-x",
		},
		"sign-in is on, the app does not see it, and nobody may see settings": {
			change: func(_ *testing.T, p *patient) {
				p.Sites[0].SignIn, p.env[keyVariable] = signInOn, "key-marker"
				p.Denied = []string{"Microsoft.Web/sites/config/list/action"}
			},
			row: ops.RowSignIn, found: "sign-in is on, and the app does not see it",
		},
		"functions are not listed, and nobody may see since when": {
			change: func(t *testing.T, p *patient) {
				t.Helper()
				listed("Health")(t, p)
				without("Web/sites/deployments/read")(t, p)
			},
			row: rowFunctions, state: ops.RowNotYet, found: "not listed yet: BatchDeadLetter, BatchManager",
		},
		"no instance is always ready": {
			change: siteWith("function:CommitResults", "http"),
			row:    rowAlwaysReady, found: "none is always ready: with an identity the plan may not see that changes wait",
			do: "az functionapp scale config always-ready set -g g -n func-x --settings function:CommitResults=1",
		},
		"a row of the app": {
			change: func(_ *testing.T, p *patient) {
				const restart = "az functionapp restart -g GROUP -n APP"
				p.rows[1] = ops.DoctorRow{Name: ops.DepCosmos, State: ops.RowWrong, Found: "stale", Do: restart}
				p.rows[2] = ops.DoctorRow{Name: ops.RowLeases, State: ops.RowWrong, Found: "none"}
			},
			row: ops.DepCosmos, found: "stale", do: "az functionapp restart -g g -n func-x", cause: ops.DepCosmos,
		},
		"Health repeats a row of the app": {
			change: func(t *testing.T, p *patient) {
				t.Helper()
				answers(503, `{"status": "live", "version": "v1", "problems": ["cosmos: 404"]}`)(t, p)
				p.rows[1] = ops.DoctorRow{Name: ops.DepCosmos, State: ops.RowWrong, Found: "404", Do: ops.Restart}
			},
			row: ops.DepCosmos, found: "404", do: "az functionapp restart -g g -n func-x", cause: ops.DepCosmos,
		},
		"Health is not ready, and the rows of the app were not seen": {
			change: func(t *testing.T, p *patient) {
				t.Helper()
				answers(503, `{"status": "live", "version": "v1", "problems": ["cosmos: 404"]}`)(t, p)
				without("Web/sites/functions/listkeys/action")(t, p)
			},
			row: rowHealth, found: "cosmos: 404", do: "sqlwriterctl status --check --app func-x", cause: rowHealth,
		},
		"the app does not know the call": {
			change: func(_ *testing.T, p *patient) { p.rowsStatus, p.rows = http.StatusNotFound, nil },
			row:    ops.DepSQL, state: ops.RowNotLooked, found: "the app answers 404: there is no operators' API",
			do: "make publish APP=func-x",
		},
		"the app says nothing of a row": {
			change: func(_ *testing.T, p *patient) { p.rows = p.rows[:6] },
			row:    ops.DepTimer, state: ops.RowNotLooked, found: "the app says nothing of it",
			do: "make publish APP=func-x",
		},
		"no right to ask the app": {
			change: without("Web/sites/functions/listkeys/action"),
			row:    ops.DepSQL, state: ops.RowNotLooked, found: "you need the right Microsoft.Web/sites/functions/listkeys/action",
			do: "az role assignment create",
		},
		"sign-in is on, and the app does not see it": {
			change: func(_ *testing.T, p *patient) { p.Sites[0].SignIn = signInOn; p.env[keyVariable] = "key-marker" },
			row:    ops.RowSignIn, found: "sign-in is on, and the app does not see it: the operators' pages refuse everybody",
			do: "az functionapp restart --ids /subscriptions/",
		},
		"the app takes sign-in for on": {
			change: func(_ *testing.T, p *patient) { p.rows[5].Found = "on: the platform's sign-in is seen" },
			row:    ops.RowSignIn, found: "sign-in is off, and the app takes it for on",
			do: "az functionapp config appsettings delete -g g -n func-x --setting-names WEBSITE_AUTH_ENABLED",
		},
		"no right to see sign-in": {
			change: func(t *testing.T, p *patient) {
				t.Helper()
				p.env[keyVariable] = "key-marker"
				without("Web/sites/config/read")(t, p)
			},
			row: ops.RowSignIn, state: ops.RowNotLooked, found: "you need the right Microsoft.Web/sites/config/read at /sub",
			do: "az role assignment create",
		},
		"the app believes a forged sign-in": {
			change: func(_ *testing.T, p *patient) {
				const stop = "az functionapp stop -g GROUP -n APP"
				p.rows[5] = ops.DoctorRow{Name: ops.RowSignIn, State: ops.RowWrong, Found: "forged", Do: stop}
			},
			row: ops.RowSignIn, found: "forged", do: "az functionapp stop -g g -n func-x",
		},
		"no telemetry": {
			change: func(_ *testing.T, p *patient) {
				p.Others["GET "+component+"/providers/Microsoft.Insights/metrics"] = p.Traces(0)
			},
			row: rowTelemetry, found: "no trace in the last 15 minutes", do: "az monitor metrics list --metrics traces/count",
		},
		"telemetry is not there yet": {
			change: func(_ *testing.T, p *patient) {
				p.Published = p.began.Add(-time.Minute)
				p.Others = p.Deployment.Answers()
				p.Others["GET "+component+"/providers/Microsoft.Insights/metrics"] = p.Traces(0)
			},
			row: rowTelemetry, state: ops.RowNotYet, found: "no trace yet",
		},
		"telemetry goes nowhere": {
			change: setTo(telemetry, ""),
			row:    rowTelemetry, found: telemetry + " has no InstrumentationKey", do: "make azure GROUP=g",
		},
		"two apps have the name": {
			change: func(_ *testing.T, p *patient) {
				p.Sites = append(p.Sites, azuretest.Site{ID: strings.Replace(p.Sites[0].ID, "/g/", "/g2/", 1)})
			},
			row: rowSite, state: ops.RowNotLooked, found: "2 apps are named func-x: /subscriptions/",
		},
		"no such app": {
			change: func(_ *testing.T, p *patient) { p.Sites = nil },
			row:    rowSite, state: ops.RowNotLooked, found: "no app is named func-x in the subscription 34adfa4f", do: "az account list -o table",
		},
		"nobody is signed in": {
			change: func(t *testing.T, _ *patient) {
				t.Helper()
				azuretest.Az(t, map[string]string{"cloud show -o json": "ERROR: Please run 'az login'"})
			},
			row: rowSite, state: ops.RowNotLooked, found: "az refuses: it is not there, or nobody is signed in", do: "az login",
		},
	} {
		t.Run(name, func(t *testing.T) {
			p := newPatient(t)
			c.change(t, p)
			state, code := cmp.Or(c.state, ops.RowWrong), exitFailed
			if state != ops.RowWrong && c.row != rowHost {
				code = exitAttention
			}
			if c.state == ops.RowNotYet {
				code = exitAttention
			}
			found, rows := p.diagnosed(t, code)
			require.Equal(t, state, rows[c.row].State, "%+v", found)
			require.Contains(t, rows[c.row].Found, c.found)
			require.Contains(t, rows[c.row].Do, c.do)
			if c.cause == "" && state != ops.RowNotLooked {
				c.cause = c.row
			}
			require.Equal(t, c.cause, found.Cause)
			require.NotContains(t, rows[c.row].Do, "\n", "one command")
			if c.cause != "" {
				require.Contains(t, p.errors, "hint: "+c.cause+": `"+rows[c.cause].Do, "the command of the cause")
			}
			if rows[c.cause].State == ops.RowNotYet {
				p.run(t, "doctor", "--app", "func-x")
				require.Contains(t, p.out, "\ncause: "+c.cause+", which may mend by itself: --wait 5m\n")
			}
			for _, row := range found.Rows[:indexOf(found, c.row)] {
				if row.State == ops.RowWrong {
					require.Equal(t, rowHealth, row.Name, "comes before")
					require.Empty(t, row.Do)
				}
			}
			providers := strings.TrimSuffix(p.SiteID(), "/Microsoft.Web/sites/func-x")
			for _, row := range found.Rows {
				commands[strings.NewReplacer(providers, "ID", p.Host, "HOST").Replace(row.Do)] = true
			}
		})
	}
	delete(commands, "")
	// az 2.91.0 has read each of its own, up to its sign-in; a new one is to be given to it.
	want, err := os.ReadFile("testdata/doctor_commands.txt")
	require.NoError(t, err)
	require.Equal(t, string(want), strings.Join(slices.Sorted(maps.Keys(commands)), "\n")+"\n")
}

func indexOf(f diagnosis, name string) int {
	for i, row := range f.Rows {
		if row.Name == name {
			return i
		}
	}
	return 0
}

// What looks wrong, and is not.
func TestDoctorIsNotMistaken(t *testing.T) {
	for name, c := range map[string]struct {
		change     func(t *testing.T, p *patient)
		row, found string
	}{
		"Premium has its own settings": {func(t *testing.T, p *patient) {
			t.Helper()
			p.replaced(t, "GET ", "functionAppConfig", "other")
			p.set("FUNCTIONS_WORKER_RUNTIME", "custom")
		}, rowAlwaysReady, "not on Flex Consumption"},
		"a Key Vault has a value": {func(_ *testing.T, p *patient) {
			p.set(config.SQLConnection, "@Microsoft.KeyVault(SecretUri=https://v.vault.azure.net/secrets/s)")
		}, rowSettings, "21 settings, each of its form; 1 refer to a Key Vault and were not judged"},
		"a client id in capitals": {func(_ *testing.T, p *patient) {
			p.set(config.CosmosClientID, strings.ToUpper(p.Client))
		}, rowIdentity, "the settings name an identity of the app"},
		"keys connect, and nothing is always ready": {func(t *testing.T, p *patient) {
			t.Helper()
			settings := p.Settings()
			for name := range settings {
				if strings.Contains(name, "__") || strings.HasSuffix(name, "AUTHENTICATION_STRING") {
					delete(settings, name)
				}
			}
			key := base64.StdEncoding.EncodeToString(make([]byte, 64))
			settings["COSMOS_CONNECTION"] = "AccountEndpoint=https://cosmos-x.documents.azure.com:443/;AccountKey=" + key
			settings["SERVICEBUS_CONNECTION"] = "Endpoint=sb://sb-x.servicebus.windows.net/;SharedAccessKeyName=x;SharedAccessKey=" + key
			settings["AzureWebJobsStorage"] = "DefaultEndpointsProtocol=https;AccountName=stx;AccountKey=" + key
			p.Others["POST /config/appsettings/list"] = p.SettingsOf(settings)
			p.replaced(t, "GET ", "function:CommitResults", "http")
		}, rowRoles, "the app connects by keys"},
	} {
		t.Run(name, func(t *testing.T) {
			p := newPatient(t)
			c.change(t, p)
			_, rows := p.diagnosed(t, exitOK)
			require.Contains(t, rows[c.row].Found, c.found)
		})
	}
}

func reversed(all []string) []string {
	all = slices.Clone(all)
	slices.Reverse(all)
	return all
}

// A role counts that a group or a management group gives: the service lists it for the identity. The oldest counts, on
// whatever page.
func TestDoctorCountsRolesOfGroups(t *testing.T) {
	p := newPatient(t)
	storage := p.Deployment.Resources()[0]
	group := p.Deployment
	group.Principal = "44444444-0000-4000-8000-000000000004"
	answer := group.Roles("b7e6dc6d-f1e8-4753-8033-0f276bb0955b /providers/Microsoft.Management/managementGroups/all")
	group.Given = p.began
	again := group.Roles("b7e6dc6d-f1e8-4753-8033-0f276bb0955b " + storage)
	answer.Body = strings.TrimSuffix(answer.Body, "]}") + "," + strings.TrimPrefix(again.Body, `{"value": [`)
	answer.Filter = p.Others["GET "+storage+azuretest.RolesOf].Filter
	p.Others["GET "+storage+azuretest.RolesOf] = answer
	p.diagnosed(t, exitOK)
	page := answer
	page.Filter = ""
	answer.Body = `{"value": [], "nextLink": "https://management.azure.com:443` + storage + `/page?api-version=2022-04-01&$skiptoken=x%20y"}`
	p.Others["GET "+storage+azuretest.RolesOf], p.Others["GET "+storage+"/page"] = answer, page
	p.diagnosed(t, exitOK)
}

// Each connection's own identity is looked at, and each account.
func TestDoctorLooksAtEachIdentity(t *testing.T) {
	const other = "33333333-0000-4000-8000-000000000003"
	at := func(p *patient, account string) {
		settings := p.Settings()
		settings[config.BlobServiceURI] = "https://" + account + ".blob.core.windows.net/"
		settings[config.BlobClientID] = p.Client
		p.Others["POST /config/appsettings/list"] = p.SettingsOf(settings)
	}
	evidence := func(given string) func(*testing.T, *patient) {
		return func(_ *testing.T, p *patient) {
			at(p, "evidence")
			id := strings.Replace(p.Deployment.Resources()[0], "/stx", "/evidence", 1)
			p.ARM.Resources = append(p.ARM.Resources, id)
			p.Others["GET "+id+azuretest.RolesOf] = p.Roles(given + " " + id)
		}
	}
	for name, c := range map[string]struct {
		change func(t *testing.T, p *patient)
		found  string // of a wrong row
	}{
		"another identity has no role": {func(t *testing.T, p *patient) {
			t.Helper()
			p.replaced(t, "GET ", `"userAssignedIdentities": {`, `"userAssignedIdentities": {"/x": {"clientId": "`+other+
				`", "principalId": "55555555-0000-4000-8000-000000000005"}, `)
			p.set(config.CosmosClientID, other)
		}, "the identity itself lacks Cosmos DB Built-in Data Contributor"},
		"the app's own identity": {func(t *testing.T, p *patient) {
			t.Helper()
			p.replaced(t, "GET ", `"identity": {`, `"identity": {"principalId": "`+p.Principal+`", `)
			p.set(config.CosmosClientID, "")
		}, ""},
		"no role at the evidence":          {evidence("x"), "the identity lacks Storage Blob Data Contributor at evidence"},
		"a role at the evidence":           {evidence("ba92f5b4-2d11-453d-a403-e96b0029c9fe"), ""},
		"the owner's role there":           {evidence("b7e6dc6d-f1e8-4753-8033-0f276bb0955b"), ""},
		"the evidence beside the packages": {func(_ *testing.T, p *patient) { at(p, "stx") }, ""},
	} {
		t.Run(name, func(t *testing.T) {
			p := newPatient(t)
			c.change(t, p)
			p.run(t, "doctor", "--app", "func-x", "-o", "json")
			if c.found == "" {
				require.Empty(t, p.errors)
			} else {
				require.Regexp(t, `"roles",\s+"state": "(wrong|not_looked)",\s+"found": "`+c.found, p.out)
			}
		})
	}
}

// breakAll breaks each row of Azure.
func (p *patient) breakAll(t *testing.T) {
	t.Helper()
	p.replaced(t, "GET ", "Running", "Stopped")
	p.replaced(t, "GET ", "function:CommitResults", "http")
	settings := p.Settings()
	settings[config.CosmosClientID] = "nobody"
	delete(settings, config.LeasePrefix)
	p.Others["POST /config/appsettings/list"] = p.SettingsOf(settings)
	p.Others["GET "+p.Deployment.Resources()[0]+azuretest.RolesOf] = p.Roles()
	p.Others["GET /deployments"] = azuretest.Answer{Version: "2024-11-01", Body: `{"value": []}`}
	p.Others["GET /functions"] = p.FunctionsOf()
	p.refused("GET /host/default/properties/status", 503)
	for call := range p.Others {
		if strings.HasSuffix(call, "/metrics") {
			p.Others[call] = p.Traces(0)
		}
	}
}

// A command of the app can be typed as it is printed. A word stays where its name is not known.
func TestDoctorFillsCommandsIn(t *testing.T) {
	const container = "az cosmosdb sql container create --resource-group GROUP --account-name ACCOUNT --database-name DATABASE --name "
	const firewall = "az sql server firewall-rule create -g GROUP -s SERVER -n NAME --start-ip-address ADDRESS"
	const named = "az cosmosdb sql container create --resource-group g --account-name cosmos-x --database-name invoices --name "
	for _, c := range []struct{ row, found, do, want string }{
		{
			ops.RowLeases, "LEASE_CONTAINER: 404", container + "LEASE_CONTAINER --ttl -1",
			named + "sqlwriter-leases --ttl -1",
		},
		{ops.RowLeases, "old", ops.Restart, "az functionapp restart -g g -n func-x"},
		{ops.DepCosmos, "404", container + "COSMOS_CONTAINER", named + "AI_PROCESS_LOGS"},
		{ops.DepCosmos, "key", container + config.ControlContainer, named + config.ControlContainer},
		{
			ops.DepCosmos, "403",
			"az cosmosdb sql role assignment create -g GROUP -a ACCOUNT --scope /dbs/DATABASE --principal-id OBJECT_ID",
			"az cosmosdb sql role assignment create -g g -a cosmos-x --scope /dbs/invoices --principal-id PRINCIPAL",
		},
		{
			ops.DepServiceBus, "BATCHES_QUEUE: not there", "az servicebus queue create -g GROUP --namespace-name NAMESPACE -n QUEUE",
			"az servicebus queue create -g g --namespace-name sb-x -n sqlwriter-web-batches",
		},
		{
			ops.RowBlobs, "403", "az role assignment create --scope ACCOUNT_ID",
			"az role assignment create --scope ACCOUNT_ID",
		},
		{ops.DepSQL, "40615", firewall, firewall},
		{
			ops.DepSQL, "18456", "sqlwriterctl migrate up --user IDENTITY --client-id CLIENT_ID",
			"sqlwriterctl migrate up --user func-x --client-id 1111abcd-0000-4000-8000-000000000001 --app func-x",
		},
	} {
		p := newPatient(t)
		i := slices.IndexFunc(p.rows, func(row ops.DoctorRow) bool { return row.Name == c.row })
		p.rows[i] = ops.DoctorRow{Name: c.row, State: ops.RowWrong, Found: c.found, Do: c.do}
		_, rows := p.diagnosed(t, exitFailed)
		require.Equal(t, strings.ReplaceAll(c.want, "PRINCIPAL", p.Principal), rows[c.row].Do)
		if c.row == ops.DepCosmos || c.row == ops.DepServiceBus {
			p.ARM.Resources = nil
			_, rows = p.diagnosed(t, exitFailed)
			require.Equal(t, c.do, rows[c.row].Do, "nobody knows the group")
		}
	}
	p := newPatient(t)
	p.set(config.CosmosContainer, "a b$(c)")
	p.rows[1].State, p.rows[1].Do = ops.RowWrong, container+"COSMOS_CONTAINER"
	_, rows := p.diagnosed(t, exitFailed)
	require.Equal(t, named+"COSMOS_CONTAINER", rows[ops.DepCosmos].Do)
}

// Must show: everything is wrong at once, and one run names it all.
func TestDoctorNamesEverythingInOneRun(t *testing.T) {
	p := newPatient(t)
	p.breakAll(t)
	p.healthStatus, p.healthBody = 403, ""
	require.Equal(t, exitFailed, p.run(t, "doctor", "--app", "func-x"))
	require.Contains(t, p.errors, "error: wrong: site, settings, identity, roles, package, host, functions, health, always_ready, telemetry; "+
		"not looked at: sql, cosmos, leases, servicebus, blobs, sign_in, timer\nhint: site: `az functionapp start --ids ")
	require.Contains(t, p.out, "\ncause: site\nwhat to type, then look again:\nsite: az functionapp start")
	require.Equal(t, 1, strings.Count(p.out, "what to type"))
	require.NotContains(t, p.out, "make ", "what follows from another has no command")
	require.Zero(t, p.asked, "an app that does not answer Health is not asked")
	const host = "GET /host/default/properties/status"
	require.Equal(t, slices.Index(p.Calls, host), len(p.Calls)-1-slices.Index(reversed(p.Calls), host), "asked once")
	require.Equal(t, exitFailed, p.run(t, "doctor", "--app", "func-x", "-q"))
	require.True(t, strings.HasPrefix(p.out, "site\nsettings\nidentity\nroles\n"), p.out)
}

type transport func(r *http.Request) (*http.Response, error)

func (t transport) RoundTrip(r *http.Request) (*http.Response, error) { return t(r) }

// slowly answers without a network, so that a test's clock runs. A negative delay is no answer.
type slowly func(r *http.Request) (time.Duration, http.Handler)

func (s slowly) RoundTrip(r *http.Request) (*http.Response, error) {
	delay, from := s(r)
	answers := time.After(max(delay, 0))
	if delay < 0 {
		answers = nil
	}
	select {
	case <-answers:
	case <-r.Context().Done():
		return nil, r.Context().Err()
	}
	w := httptest.NewRecorder()
	from.ServeHTTP(w, r)
	return w.Result(), nil
}

// Must show: a warm app is looked at within 60 seconds, a cold one within 120, whatever does not answer.
func TestDoctorEndsInTime(t *testing.T) {
	const never = time.Duration(-1)
	for name, c := range map[string]struct {
		// Delays of the calls that find the app, of Azure's others, of Health and of the app.
		find, azure, health, app time.Duration
		code                     int
		says                     string
		took                     time.Duration
		change                   func(t *testing.T, p *patient)
	}{
		"warm": {time.Second, 2 * time.Second, time.Second, time.Second, exitOK, "", 10 * time.Second, nil},
		"warm, and no row has an answer": {
			2 * time.Second, never, time.Second, never, exitAttention,
			"not yet: host; not looked at: settings, identity, roles, package, functions, sql", 29 * time.Second, nil,
		},
		"Azure does not answer": {never, never, never, never, exitAttention, "not looked at: site, settings", 10 * time.Second, nil},
		"cold":                  {2 * time.Second, 2 * time.Second, 80 * time.Second, 15 * time.Second, exitOK, "", 103 * time.Second, nil},
		"cold, and no row has an answer": {
			2400 * time.Millisecond, never, 89 * time.Second, never, exitAttention, "not yet: host; ",
			118600 * time.Millisecond, nil,
		},
		"all of Azure is wrong, and the app is dead": {
			2 * time.Second, 2 * time.Second, never, never, exitFailed,
			"wrong: site, settings, identity, roles, package, host, functions, always_ready, telemetry; not yet: health; " +
				"not looked at: sql, cosmos, leases, servicebus, blobs, sign_in, timer",
			98 * time.Second, func(t *testing.T, p *patient) { t.Helper(); p.breakAll(t) },
		},
	} {
		t.Run(name, func(t *testing.T) {
			p := newPatient(t)
			if c.change != nil {
				c.change(t, p)
			}
			finds := []string{
				"/subscriptions/" + p.ARM.Subscription + "/resources", p.SiteID(),
				p.SiteID() + "/functions/Ops/listkeys",
			}
			asked := map[string]int{}
			var lock sync.Mutex
			p.http = &http.Client{Transport: slowly(func(r *http.Request) (time.Duration, http.Handler) {
				lock.Lock()
				asked[r.URL.Path]++
				first := asked[r.URL.Path] == 1
				lock.Unlock()
				switch {
				case r.URL.Path == "/api/health":
					return c.health, p.app
				case r.URL.Host == p.Host:
					return c.app, p.app
				case first && (slices.Contains(finds, r.URL.Path) || strings.HasSuffix(r.URL.Path, "/authsettingsV2")):
					return c.find, p.Config.Handler
				}
				return c.azure, p.Config.Handler
			})}
			synctest.Test(t, func(t *testing.T) {
				start := time.Now()
				p.now = func() time.Time { return p.began.Add(time.Since(start)) }
				require.Equal(t, c.code, p.run(t, "doctor", "--app", "func-x"), p.errors+p.out)
				require.Equal(t, c.took, time.Since(start))
				require.Contains(t, p.errors, c.says)
			})
		})
	}
}

// az is a script: what it has started may hold its output open after its end.
func TestDoctorDoesNotWaitForAChildOfAz(t *testing.T) {
	dir := t.TempDir()
	//nolint:gosec // a program must be executable
	require.NoError(t, os.WriteFile(filepath.Join(dir, "az"), []byte("#!/bin/sh\nsleep 20 &\nwait\n"), 0o700))
	t.Setenv("PATH", dir+string(os.PathListSeparator)+os.Getenv("PATH"))
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	start := time.Now()
	require.ErrorIs(t, az(ctx, nil, "cloud", "show"), context.DeadlineExceeded)
	require.Less(t, time.Since(start), 10*time.Second)
}

// --wait looks again while something is not yet there, and not at what is wrong for another reason.
func TestDoctorWaits(t *testing.T) {
	p := newPatient(t)
	p.Published = p.began.Add(-time.Minute)
	p.Others = p.Deployment.Answers()
	p.Others["GET /functions"] = p.FunctionsOf("Health")
	waits := 0
	clock := p.began
	p.now = func() time.Time { return clock }
	p.wait = func(_ context.Context, d time.Duration) error {
		waits++
		clock = clock.Add(d)
		if waits == 3 {
			p.Others["GET /functions"] = p.FunctionsOf(theFunctions()...)
		}
		return nil
	}
	require.Equal(t, exitOK, p.run(t, "doctor", "--app", "func-x", "--wait", "5m"), p.errors)
	require.Equal(t, 3, waits)
	require.Contains(t, p.errors, "not yet: functions; looking for 5m0s more\n")

	p.Others["GET /functions"] = p.FunctionsOf("Health")
	require.Equal(t, exitFailed, p.run(t, "doctor", "--app", "func-x", "--wait", "5m"), "in time it is wrong")
	require.Less(t, waits, 20, "what is wrong is not waited for")
	p.Published = clock
	p.Others = p.Deployment.Answers()
	p.Others["GET /functions"] = p.FunctionsOf("Health")
	before := waits
	p.rows[2].State = ops.RowWrong
	require.Equal(t, exitFailed, p.run(t, "doctor", "--app", "func-x", "--wait", "1m"))
	require.Greater(t, waits, before, "what depends on something that is not yet may mend by itself")
	before = waits
	siteWrong := p.Others["GET "]
	p.replaced(t, "GET ", "Running", "Stopped")
	require.Equal(t, exitFailed, p.run(t, "doctor", "--app", "func-x", "--wait", "1m"))
	require.Equal(t, before, waits, "waiting does not start an app")
	p.Others["GET "], p.rows[2].State = siteWrong, ops.RowOK
	require.Equal(t, exitAttention, p.run(t, "doctor", "--app", "func-x", "--wait", "1m"), p.errors)
	require.Equal(t, exitAttention, p.run(t, "doctor", "--app", "func-x"), "without --wait it looks once")
}

// The cause follows from nothing else; what follows from it, or from another, has no command of its own.
func TestDoctorBlamesWhatComesFirst(t *testing.T) {
	for name, c := range map[string]struct{ wrong, notYet, notLooked, roots, waits string }{
		"nothing":                    {},
		"each for itself":            {wrong: "always_ready sql", roots: "always_ready sql"},
		"another thing is not yet":   {wrong: "leases", notYet: "roles", roots: "leases roles"},
		"an ok row between":          {wrong: "roles functions", roots: "roles functions"},
		"what it needs is not yet":   {wrong: "host", notYet: "roles", roots: "roles", waits: "roles"},
		"what it needs was not seen": {wrong: "host", notLooked: "settings roles", roots: "host settings"},
		"not seen either":            {notLooked: "site settings identity", roots: "site"},
		"Health repeats it":          {wrong: "health cosmos leases", roots: "cosmos"},
		"Health repeats another":     {wrong: "health timer", roots: "timer"},
		"Health alone":               {wrong: "health", roots: "health"},
		"the feed":                   {wrong: "leases feed", roots: "leases"},
		"the app is not seen":        {wrong: "health", notLooked: "sql timer", roots: "health sql"},
	} {
		t.Run(name, func(t *testing.T) {
			var f diagnosis
			for _, one := range doctorRows() {
				row := ops.DoctorRow{Name: one.name, State: ops.RowOK, Do: one.name}
				if row.Name == ops.DepTimer {
					row.Do = ops.DepSQL // the same command is named once
				}
				for state, names := range map[string]string{
					ops.RowWrong: c.wrong, ops.RowNotYet: c.notYet, ops.RowNotLooked: c.notLooked,
				} {
					if slices.Contains(strings.Fields(names), one.name) {
						row.State = state
					}
				}
				f.Rows = append(f.Rows, row)
			}
			f.weigh(true)
			roots := idsOf(f.roots, func(row ops.DoctorRow) string { return row.Name })
			require.Equal(t, c.roots, strings.Join(roots, " "))
			if cause, _, _ := strings.Cut(c.roots, " "); c.wrong+c.notYet != "" {
				require.Equal(t, cause, f.Cause)
			} else {
				require.Empty(t, f.Cause)
			}
			require.Equal(t, c.waits, strings.Join(f.waits, " "))
		})
	}
}

// Without the name of an app in Azure there is what the app itself says: of the local stack all that there is, of
// another address not what only Azure knows.
func TestDoctorOfAnAddress(t *testing.T) {
	p := newPatient(t)
	p.env["SQLWRITER_KEY"] = "key-marker"
	_, rows := p.diagnosed(t, exitAttention, "--app", "https://"+p.Host)
	require.Equal(t, ops.DoctorRow{
		Name: rowSite, State: ops.RowNotLooked, Found: "only --app NAME looks at Azure",
		Do: "sqlwriterctl doctor --app NAME",
	}, rows[rowSite])
	require.Equal(t, ops.RowOK, rows[ops.DepSQL].State)
	p.rows[0] = ops.DoctorRow{Name: ops.DepSQL, State: ops.RowWrong, Do: "sqlwriterctl migrate up"}
	_, rows = p.diagnosed(t, exitFailed, "--app", "https://"+p.Host)
	require.Equal(t, "sqlwriterctl migrate up --app https://"+p.Host, rows[ops.DepSQL].Do)
	p.rows[0] = ops.DoctorRow{Name: ops.DepSQL, State: ops.RowOK}
	local := httptest.NewServer(http.HandlerFunc(p.serve))
	t.Cleanup(local.Close)
	p.runningStack(t, stackfile.Stack{Functions: local.URL, FunctionKey: "key-marker"})
	found, _ := p.diagnosed(t, exitOK, "--utc")
	require.Len(t, found.Rows, 8)
	require.Equal(t, exitUsage, newBench(t).run(t, "doctor"))
}
