package main

import (
	"encoding/json"
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"sqlwriter/cmd/internal/stackfile"
	"sqlwriter/internal/app/open"
	"sqlwriter/internal/condition"
	"sqlwriter/internal/config"
	"sqlwriter/internal/ops"
	"sqlwriter/test/azuretest"
	"sqlwriter/test/bicep"
)

// Must show: no value of a setting, no word of az or of the Resource Manager that could have one, is in any output.
func TestDoctorPrintsNoValue(t *testing.T) {
	breaks := map[string]func(t *testing.T, p *patient){
		"all are there": func(*testing.T, *patient) {},
		"everything refuses": func(_ *testing.T, p *patient) {
			for call := range p.Others {
				if call != "GET " && call != "POST /config/appsettings/list" {
					p.refused(call, http.StatusConflict)
				}
			}
		},
		"the settings refuse": func(_ *testing.T, p *patient) { // the words of a real app have no value (internal/app)
			p.refused("POST /config/appsettings/list", http.StatusConflict)
			p.rows[0].Found, p.healthBody = "as it is", "{}"
		},
		"the site refuses": func(_ *testing.T, p *patient) { p.refused("GET ", http.StatusConflict) },
		"the app refuses": func(_ *testing.T, p *patient) {
			p.rowsStatus = http.StatusInternalServerError
		},
		"the app refuses in words": func(t *testing.T, p *patient) {
			t.Helper()
			said := map[string]string{"kind": "infrastructure", "code": "x", "detail": p.rows[0].Found}
			detail, err := json.Marshal(said)
			require.NoError(t, err)
			p.rowsStatus, p.rowsBody = http.StatusForbidden, string(detail)
		},
		"the host and the functions say nothing": func(_ *testing.T, p *patient) {
			p.refused("GET /host/default/properties/status", http.StatusServiceUnavailable)
			p.refused("GET /hostruntime/admin/functions/Ops/status", http.StatusServiceUnavailable)
		},
		"the connection to Azure breaks": func(_ *testing.T, p *patient) {
			with := p.http.Transport
			p.http = &http.Client{Transport: transport(func(r *http.Request) (*http.Response, error) {
				if strings.Contains(r.URL.RawQuery, "marked") {
					return nil, errors.New("connection reset by peer")
				}
				return with.RoundTrip(r)
			})}
		},
		"az refuses": func(t *testing.T, _ *patient) {
			t.Helper()
			azuretest.Az(t, map[string]string{"cloud show -o json": "ERROR: marked-of-az"})
		},
		"az gives no token for the app": func(t *testing.T, p *patient) {
			t.Helper()
			p.Sites[0].SignIn = signInOn
			answers := p.ARM.Answers(nil)
			answers["account get-access-token -o json --resource api://c1"] = "ERROR: marked-of-az"
			azuretest.Az(t, answers)
		},
	}
	for name, change := range breaks {
		t.Run(name, func(t *testing.T) {
			p := newPatient(t)
			p.Secret = " marked-of-the-service"
			marked := map[string]string{}
			for name := range p.Settings() {
				marked[name] = "marked-" + name
			}
			marked["SQL_CONNECTION"] = "sqlserver://u:marked-password@marked-host?database=marked-db&fedauth=x&user+id=marked-client"
			marked["COSMOS_CONNECTION__accountEndpoint"] = "https://marked-account.documents.azure.com/"
			marked["AzureWebJobsStorage__accountName"] = "markedstore"
			marked["COSMOS_CONNECTION"] = "AccountEndpoint=https://marked/;AccountKey=marked-key=="
			p.Others["POST /config/appsettings/list"] = p.SettingsOf(marked)
			all := strings.Join([]string{
				marked["SQL_CONNECTION"], marked["COSMOS_CONNECTION"], "marked-key==", "marked-password@marked-host",
				marked["SYS_NAME"],
			}, " ")
			p.replaced(t, "GET /host/default/properties/status", `"Running"`, `"Error", "errors": ["`+all+`"]`)
			p.Others["GET /hostruntime/admin/functions/Ops/status"] = p.ErrorsOf(all)
			p.healthStatus, p.healthBody = 503, `{"status": "live", "version": "v1", "problems": ["`+all+`"]}`
			p.rows[0].Found = all
			// Names in a command are the only values that are printed.
			const words = "--resource-group GROUP --account-name ACCOUNT --database-name DATABASE --name COSMOS_CONTAINER"
			const typed = "--resource-group g --account-name marked-account --database-name marked-COSMOS_DATABASE --name marked-COSMOS_CONTAINER"
			p.rows[1].State, p.rows[1].Do = ops.RowWrong, "az cosmosdb sql container create "+words
			p.ARM.Resources[2] = strings.Replace(p.ARM.Resources[2], "cosmos-x", "marked-account", 1)
			change(t, p)
			temporary := t.TempDir()
			t.Setenv("TMPDIR", temporary)
			for _, how := range [][]string{{"-o", "json"}, {"--verbose"}, {"-q"}} {
				code := p.run(t, append([]string{"doctor", "--app", "func-x"}, how...)...)
				require.NotEqual(t, exitOK, code)
				printed := p.out + p.errors
				if name == "all are there" && how[0] == "-o" {
					require.Contains(t, printed, typed)
				}
				require.NotContains(t, strings.ReplaceAll(printed, typed, ""), "marked")
				require.NotContains(t, printed, "key-marker")
			}
			require.NoFileExists(t, filepath.Join(p.dir, stackfile.Dir))
			for _, dir := range []string{p.dir, temporary} {
				left, err := os.ReadDir(dir)
				require.NoError(t, err)
				require.Empty(t, left)
			}
		})
	}
}

// A value is hidden wherever the host says it; in our own texts a plain word is none.
func TestDoctorHidesValues(t *testing.T) {
	hide := hiding(map[string]string{
		"SQL_CONNECTION": "sqlserver://u:pass%2Fword@h?database=sqlwriter", "MODE": "live", "KEY": "averylongsecretvalue",
		"OTHER": "caf%E9-marked", "COSMOS_CONNECTION": "AccountEndpoint=https://x/;AccountKey = 0123456789abcdefghij ;\n",
		"SHORT": "sqlserver://sa:Pw1%2F@h", "QUEUE": "hunter2x", "PLUS": "sqlserver://sa:ab+marked%2Fcd@h",
		"AT": "sqlserver://sa:p@mk1@h", "OPS_KEY": "zyxwvutsrqponmlkjihg", "ACCOUNT": "https://MarkedAccount.x",
	})
	for text, want := range map[string][2]string{
		"sqlwriter-control live":    {"(SQL_CONNECTION)-control (MODE)", "sqlwriter-control live"},
		"Pw1/ Pw1%2F":               {"(SHORT) (SHORT)", "(SHORT) (SHORT)"},
		"key 0123456789abcdefghij":  {"key (COSMOS_CONNECTION)", "key (COSMOS_CONNECTION)"},
		"key 0123456789abcdefg...":  {"key (COSMOS_CONNECTION)cdefg...", "key (COSMOS_CONNECTION)cdefg..."},
		"zyxwvutsrqponmlkji... ":    {"(OPS_KEY)nmlkji... ", "(OPS_KEY)nmlkji... "},
		"ab+marked/cd p@mk1":        {"(PLUS) (AT)", "(PLUS) (AT)"},
		"at markedaccount.x":        {"at (ACCOUNT)", "at (ACCOUNT)"},
		"_hunter2x %27hunter2x%27":  {"_(QUEUE) %27(QUEUE)%27", "_(QUEUE) %27(QUEUE)%27"},
		"database 'sqlwriter'":      {"database '(SQL_CONNECTION)'", "database 'sqlwriter'"},
		"xaverylongsecretvaluex":    {"x(KEY)x", "x(KEY)x"},
		"pass%2Fword pass/word":     {"(SQL_CONNECTION) (SQL_CONNECTION)", "(SQL_CONNECTION) (SQL_CONNECTION)"},
		"caf%E9-marked caf\xe9-mar": {"(OTHER) caf\xe9-mar", "(OTHER) caf\xe9-mar"},
	} {
		require.Equal(t, want, [2]string{hide(text, false), hide(text, true)})
	}
	require.Equal(t, "as it is", hiding(nil)("as it is", false))
}

// No text of ours has a value of the template's settings, or is taken for one.
func TestDoctorHidesNoWordOfOurs(t *testing.T) {
	ours := []string{
		"2 leases of 1 owner, renewed in the last 9s", "user sqlwriter; rights, procedures of this build",
		"container sqlwriter-control has the partition key \"/owner\": it must be /id", "written and deleted",
	}
	for _, one := range open.Faults() {
		ours = append(ours, one.Reason)
	}
	for _, one := range condition.Table() {
		ours = append(ours, one.Says())
	}
	files, err := bicep.Deployed()
	require.NoError(t, err)
	all := []map[string]string{azuretest.Deployment{}.Settings()}
	for _, file := range files {
		if settings := file.Settings(); len(settings) > 0 {
			all = append(all, settings)
		}
	}
	require.Greater(t, len(all), 3)
	for _, settings := range all {
		settings[config.LeaseContainer] = "leases"
		settings[config.SQLConnection] = strings.Replace(settings[config.SQLConnection], "invoices", "sqlwriter", 1)
		hide := hiding(settings)
		for name := range settings {
			_, err := config.Load(func(other string) (string, bool) { return settings[other], other != name })
			problems, _ := errors.AsType[config.Problems](err)
			for _, problem := range problems {
				ours = append(ours, problem.String())
			}
		}
		for _, text := range ours {
			require.Equal(t, text, hide(text, true))
		}
	}
}
