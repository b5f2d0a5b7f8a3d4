package main

import (
	"cmp"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"sqlwriter/test/azuretest"
	"sqlwriter/test/emulators/cosmosdb/cosmosdbtest"
)

// signInOn is authsettingsV2 as deploy/azure and docs/settings.md (Sign-in) make it.
const signInOn = `{"platform":{"enabled":true},"identityProviders":{"azureActiveDirectory":{"enabled":true,
	"registration":{"clientId":"c1","openIdIssuer":"https://login.microsoftonline.com/t/v2.0"},
	"validation":{"allowedAudiences":["c1","api://c1"]}}}}`

// inAzure is an ARM with the app func-x, which takes a key or a token of the person, and a bench that trusts both.
func inAzure(t *testing.T, key string) (*bench, *azuretest.ARM) {
	t.Helper()
	plain := host(t, newWorking(t, 1).ops, key).Config.Handler
	app := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if rest, ok := strings.CutPrefix(r.URL.Path, "/api/ui/api/v1/"); ok &&
			r.Header.Get("Authorization") == "Bearer app-token-marker" {
			r.URL.Path = "/api/ops/v1/" + rest
			r.Header.Set("x-functions-key", key)
		}
		plain.ServeHTTP(w, r)
	}))
	t.Cleanup(app.Close)
	a := azuretest.NewARM(t, azuretest.Site{
		Host: strings.TrimPrefix(app.URL, "https://"), Keys: map[string]string{"default": "default-key-marker"},
		SignIn: `{"platform":{"enabled":false}}`,
	})
	a.Sites[0].ID = siteID(a.Subscription, "g", "func-x")
	b := newBench(t)
	b.http = a.Client()
	azuretest.Az(t, a.Answers(map[string]string{"api://c1": "app-token-marker"}))
	return b, a
}

func siteID(subscription, group, name string) string {
	return "/subscriptions/" + subscription + "/resourceGroups/" + group + "/providers/Microsoft.Web/sites/" + name
}

// Must show: by the app's name, whom az has signed in gets in. The key is the person's own, and nobody sees it.
func TestAPersonGetsInWithoutAKey(t *testing.T) {
	const of = "operator-0b1f6471-1bf0-4dda-aec3-cb9272f09590"
	lists := []string{"GET", "GET /config/authsettingsV2", "POST /functions/Ops/listkeys"}
	for name, c := range map[string]struct {
		change func(b *bench, a *azuretest.ARM)
		key    string
		says   string
		calls  []string
	}{
		"with a key that is there": {
			func(_ *bench, a *azuretest.ARM) { a.Sites[0].Keys[of] = "kept-key-marker" }, "kept-key-marker",
			"(--app), with " + of,
			lists,
		},
		"with a key that is made": {
			func(*bench, *azuretest.ARM) {}, "made-key-marker", "(--app), with " + of,
			append(slices.Clone(lists), "PUT /functions/Ops/keys/"+of),
		},
		"by the sign-in": {
			func(_ *bench, a *azuretest.ARM) {
				a.Sites[0].SignIn = signInOn
				a.Denied = []string{"Microsoft.Web/sites/functions/listkeys/action"} // a Reader of the resource may come in
			}, "unused-key-marker", "(--app), as the signed-in user",
			[]string{"GET", "GET /config/authsettingsV2"},
		},
		"with SQLWRITER_KEY": {
			func(b *bench, _ *azuretest.ARM) { b.env["SQLWRITER_KEY"] = "own-key-marker" }, "own-key-marker",
			"(--app), with a function key",
			[]string{"GET"},
		},
		"of two apps with this name in two subscriptions, to that of az": {
			func(_ *bench, a *azuretest.ARM) {
				a.Sites = append(a.Sites, azuretest.Site{ID: siteID("other", "g", "func-x"), Host: "nobody.invalid"})
			}, "made-key-marker", "(--app), with " + of,
			append(slices.Clone(lists), "PUT /functions/Ops/keys/"+of),
		},
	} {
		t.Run(name, func(t *testing.T) {
			b, a := inAzure(t, c.key)
			c.change(b, a)
			require.Equal(t, exitOK, b.run(t, "status", "--app", "func-x", "--verbose"), b.errors)
			require.Contains(t, b.errors, "app: https://"+a.Sites[0].Host+" "+c.says)
			require.Equal(t, c.calls, a.Calls)
			require.NotContains(t, b.errors+b.out, "marker")
		})
	}
	b, a := inAzure(t, "made-key-marker")
	b.env["SQLWRITER_APP"] = siteID(a.Subscription, "g", "func-x")
	require.Equal(t, exitOK, b.run(t, "flow", "pause", "--why", "x"), "the key acts: %s", b.errors)
	require.Contains(t, b.errors, "(SQLWRITER_APP), with "+of)
}

// One message says what stands in the way, and one command what to do. No text has a key or a token.
func TestWhatKeepsAPersonOut(t *testing.T) {
	const denied = "error: you need the right Microsoft.Web/sites/"
	const grant = "hint: who may give rights there: `az role assignment create --assignee 0b1f6471-1bf0-4dda-aec3-cb9272f09590 --role \"Website Contributor\" --scope /subscriptions/34adfa4f-cedf-4dc0-ba29-b6d1a69ab345/resourceGroups/g/providers/Microsoft.Web/sites/func-x`"
	without := func(right string) func(*testing.T, *azuretest.ARM) {
		return func(_ *testing.T, a *azuretest.ARM) { a.Denied = []string{"Microsoft.Web/sites/" + right} }
	}
	for name, c := range map[string]struct {
		change     func(t *testing.T, a *azuretest.ARM)
		app        string
		command    []string
		code       int
		what, hint string
	}{
		"no right to see keys": {
			change: without("functions/listkeys/action"),
			what:   denied + "functions/listkeys/action at /sub", hint: grant,
		},
		"no right to make one": {
			change: without("functions/keys/write"),
			what:   denied + "functions/keys/write at /sub", hint: grant,
		},
		"no right to see settings": {
			change:  without("config/list/action"),
			command: []string{"document", "submit", "x.json"}, what: denied + "config/list/action at /sub", hint: grant,
		},
		"the functions are not there": {
			change: func(_ *testing.T, a *azuretest.ARM) { a.Sites[0].Keys = nil },
			what:   "error: Azure Resource Manager answers 404 NotFound: Function 'Ops' not found.",
			hint:   "hint: `make publish APP=func-x` deploys the functions",
		},
		"no such app": {
			app:  "func-y",
			what: "error: no app is named func-y in the subscription 34adfa4f-cedf-4dc0-ba29-b6d1a69ab345, or you may not see it",
			hint: "hint: `az account list -o table` lists subscriptions, `az account set --subscription NAME` chooses one",
		},
		"two apps in one subscription": {
			change: func(_ *testing.T, a *azuretest.ARM) {
				a.Sites = append(a.Sites, azuretest.Site{ID: siteID(a.Subscription, "h", "func-x")})
			},
			what: "error: 2 apps are named func-x: /subscriptions/", hint: "hint: give one of these ids",
		},
		"a host name": {
			app: "func-x.azurewebsites.net", code: exitUsage,
			what: "error: --app: expected the function app's name, its id, or https://NAME.azurewebsites.net",
			hint: "hint: see `sqlwriterctl status --help`",
		},
		"nobody is signed in": {
			change: func(t *testing.T, a *azuretest.ARM) {
				t.Helper()
				answers := a.Answers(nil)
				for words := range answers {
					if strings.HasPrefix(words, "account") {
						answers[words] = "ERROR: Please run 'az login' to setup account.\n"
					}
				}
				azuretest.Az(t, answers)
			},
			what: "error: az: ERROR: Please run 'az login' to setup account.\n", hint: "hint: sign in with `az login`",
		},
		"no az": {
			change: func(t *testing.T, _ *azuretest.ARM) { t.Helper(); t.Setenv("PATH", t.TempDir()) },
			what:   `error: exec: "az": executable file not found in $PATH`,
			hint:   "hint: install az (https://aka.ms/azure-cli) and `az login`; without it",
		},
		"a key that the app does not take": {
			change: func(_ *testing.T, a *azuretest.ARM) {
				a.Sites[0].Keys["operator-"+a.Person] = "another-key-marker"
			},
			what: "error: the app answers 401", hint: "hint: the key is valid: look whether the app is stopped",
		},
	} {
		t.Run(name, func(t *testing.T) {
			b, a := inAzure(t, "made-key-marker")
			if c.change != nil {
				c.change(t, a)
			}
			args := c.command
			if args == nil {
				args = []string{"status"}
			}
			args = append(args, "--app", cmp.Or(c.app, "func-x"), "--verbose")
			require.Equal(t, cmp.Or(c.code, exitFailed), b.run(t, args...), b.errors)
			require.Contains(t, b.errors, c.what)
			require.Contains(t, b.errors, c.hint)
			require.NotContains(t, b.errors+b.out, "marker")
		})
	}
}

// Commands that open SQL and Cosmos DB by themselves take the settings of an app in Azure, and connect as the person.
func TestTheSettingsOfAnAppInAzure(t *testing.T) {
	b, a := inAzure(t, "unused")
	run := cosmosdbtest.Start(t)
	run.Results(t, "invoices", "AI_PROCESS_LOGS")
	a.Sites[0].Settings = map[string]string{
		"COSMOS_CONNECTION": run.ConnectionString, "COSMOS_DATABASE": "invoices", "COSMOS_CONTAINER": "AI_PROCESS_LOGS",
	}
	file := filepath.Join(b.dir, "x.json")
	text := `{"id":"2025-12-17 10:30:00.000000-06:00-0001-1","request_details":{"id":"1","sys_name":"web"},
		"sql_writer":{"status":"pending"}}`
	require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
	require.Equal(t, exitOK, b.run(t, "document", "submit", file, "--app", "func-x"), b.errors)
	require.Contains(t, b.errors, "connections: the app func-x (--app), as the user of az\n")
	b.env["SQLWRITER_APP"] = "func-x"
	require.Equal(t, exitFailed, b.run(t, "document", "submit", file), "it is there")
	require.Contains(t, b.errors, "connections: the app func-x (SQLWRITER_APP), as the user of az\n")
	require.Equal(t, exitUsage, b.run(t, "document", "submit", file, "--app", "func-x", "--settings", file))
	require.Contains(t, b.errors, "error: --app: this command opens SQL and Cosmos DB by itself")

	a.Sites[0].Settings = map[string]string{
		"COSMOS_CONNECTION__accountEndpoint": "https://a.documents.azure.com:443/",
		"COSMOS_CONNECTION__clientId":        "of-the-app",
		"SQL_CONNECTION":                     "sqlserver://s.database.windows.net?database=d&fedauth=ActiveDirectoryManagedIdentity&user+id=of-the-app",
	}
	var out strings.Builder
	env := b.environment(nil, nil)
	env.stderr = &out
	s, err := (&app{environment: env, globals: globals{App: "func-x"}}).settings(t.Context())
	require.NoError(t, err)
	c := s.config()
	require.Equal(t, "https://a.documents.azure.com:443/ az", c.Cosmos.Endpoint+" "+c.Cosmos.ClientID)
	require.Equal(t, "sqlserver://s.database.windows.net?database=d&fedauth=ActiveDirectoryAzCli", c.SQL.Connection.Reveal())
	require.Empty(t, out.String())
}
