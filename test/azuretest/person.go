package azuretest

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

// Az puts an az on PATH, in front of the others, that knows these calls and no other: the words after az, and what is
// printed. An answer that begins with ERROR is an error. A call that is not in the table fails as a wrong command does.
func Az(t testing.TB, answers map[string]string) {
	t.Helper()
	dir := t.TempDir()
	script := "#!/bin/sh\ncase \"$*\" in\n"
	n := 0
	for words, answer := range answers {
		n++
		file := filepath.Join(dir, fmt.Sprintf("answer%d", n))
		require.NoError(t, os.WriteFile(file, []byte(answer), 0o600))
		then := "cat " + file
		if strings.HasPrefix(answer, "ERROR") {
			then += " >&2; exit 1"
		}
		script += fmt.Sprintf("'%s') %s ;;\n", words, then)
	}
	script += "*) echo \"ERROR: '$*' is misspelled or not recognized by the system.\" >&2; exit 2 ;;\nesac\n"
	//nolint:gosec // a program must be executable
	require.NoError(t, os.WriteFile(filepath.Join(dir, "az"), []byte(script), 0o700))
	t.Setenv("PATH", dir+string(os.PathListSeparator)+os.Getenv("PATH"))
}

// Site is a function app of an ARM.
type Site struct {
	ID, Host string
	// Keys are those of function Ops; nil where it is not deployed.
	Keys     map[string]string
	Settings map[string]string
	// SignIn is the properties of authsettingsV2.
	SignIn string
}

// ARM imitates Azure Resource Manager over TLS, as far as the vendor's examples of Microsoft.Web 2024-11-01 and of
// Resources_List say. It answers one token only. Anything else that is asked fails the test.
type ARM struct {
	*httptest.Server

	Subscription, Person, Token string
	Sites                       []Site
	// Resources are the ids of the subscription's others.
	Resources []string
	// Others are the answers to further calls, by method and path; of a site without the site's id.
	Others map[string]Answer
	// Denied are the rights that the person does not have.
	Denied []string
	// Secret stands in the text of each refusal.
	Secret string
	// Calls are the methods and paths that were asked, without the site's id.
	Calls []string

	t     testing.TB
	calls sync.Mutex
}

// Answer is that to one call. Status is 200 if it is 0. Filter is what must be asked for.
type Answer struct {
	Version, Right, Filter, Body string
	Status                       int
}

// NewARM starts one, with the person signed in to az (SignIn changes that).
func NewARM(t testing.TB, sites ...Site) *ARM {
	t.Helper()
	a := &ARM{
		t: t, Subscription: "34adfa4f-cedf-4dc0-ba29-b6d1a69ab345", Person: "0b1f6471-1bf0-4dda-aec3-cb9272f09590",
		Sites: sites,
	}
	claims := base64.RawURLEncoding.EncodeToString([]byte(`{"aud":"https://management.azure.com/","oid":"` + a.Person + `"}`))
	a.Token = "e30." + claims + ".arm-token-marker"
	a.Server = TLS(t, a.serve)
	return a
}

// TLS starts a server that says nothing of connections that a client has begun and did not need.
func TLS(t testing.TB, serve http.HandlerFunc) *httptest.Server {
	t.Helper()
	s := httptest.NewUnstartedServer(serve)
	s.Config.ErrorLog = log.New(io.Discard, "", 0)
	s.StartTLS()
	t.Cleanup(s.Close)
	return s
}

// Answers are those of az for a person who is signed in, with tokens for these resources beside the ARM's.
func (a *ARM) Answers(resources map[string]string) map[string]string {
	token := func(text string) string {
		return fmt.Sprintf(`{"accessToken":"%s","expiresOn":"2099-01-01 00:00:00.000000","expires_on":4070908800,`+
			`"subscription":"%s","tenant":"54826b22-38d6-4fb2-bad9-b7b93a3e9c5a","tokenType":"Bearer"}`, text, a.Subscription)
	}
	const audience = "https://management.core.windows.net/"
	answers := map[string]string{
		"cloud show -o json": fmt.Sprintf(`{"name":"AzureCloud","isActive":true,"endpoints":`+
			`{"activeDirectoryResourceId":"%s","resourceManager":"%s/"}}`, audience, a.URL),
		"account get-access-token -o json --resource " + audience: token(a.Token),
	}
	for resource, text := range resources {
		answers["account get-access-token -o json --resource "+resource] = token(text)
	}
	return answers
}

func (a *ARM) serve(w http.ResponseWriter, r *http.Request) {
	refuse := func(status int, code, message string) { a.refuse(w, status, code, message) }
	if r.Header.Get("Authorization") != "Bearer "+a.Token {
		refuse(http.StatusUnauthorized, "InvalidAuthenticationToken", "The access token is invalid.")
		return
	}
	if r.URL.Path == "/subscriptions/"+a.Subscription+"/resources" {
		a.list(w, r)
		return
	}
	if other, known := a.Others[r.Method+" "+r.URL.Path]; known {
		a.other(w, r, r.URL.Path, other)
		return
	}
	i := slices.IndexFunc(a.Sites, func(s Site) bool { return strings.HasPrefix(r.URL.Path+"/", s.ID+"/") })
	if i < 0 {
		refuse(http.StatusNotFound, "ResourceNotFound", "The Resource '"+r.URL.Path+"' was not found.")
		return
	}
	site := &a.Sites[i]
	path := strings.TrimPrefix(r.URL.Path, site.ID)
	a.calls.Lock()
	a.Calls = append(a.Calls, strings.TrimSpace(r.Method+" "+path))
	a.calls.Unlock()
	if other, known := a.Others[r.Method+" "+path]; known {
		a.other(w, r, site.ID, other)
		return
	}
	if r.URL.Query().Get("api-version") != "2024-11-01" {
		a.t.Errorf("ARM is asked with another version: %s", r.URL)
	}
	key := "/functions/Ops/keys/operator-" + a.Person
	call, known := map[string]struct {
		right  string
		answer func() any
	}{
		"GET ": {"Microsoft.Web/sites/read", func() any {
			return map[string]any{
				"id": site.ID, "name": site.ID[strings.LastIndex(site.ID, "/")+1:], "type": "Microsoft.Web/sites",
				"properties": map[string]string{"state": "Running", "defaultHostName": site.Host},
			}
		}},
		"GET /config/authsettingsV2": {"Microsoft.Web/sites/config/read", func() any {
			return map[string]any{"name": "authsettingsV2", "properties": json.RawMessage(site.SignIn)}
		}},
		"POST /config/appsettings/list": {"Microsoft.Web/sites/config/list/action", func() any {
			return map[string]any{"name": "appsettings", "properties": site.Settings}
		}},
		// the service answers this one without properties (azure-cli, list_function_keys)
		"POST /functions/Ops/listkeys": {"Microsoft.Web/sites/functions/listkeys/action", func() any { return site.Keys }},
		"PUT " + key: {"Microsoft.Web/sites/functions/keys/write", func() any {
			site.Keys["operator-"+a.Person] = "made-key-marker"
			return map[string]any{"name": "operator-" + a.Person, "value": "made-key-marker"}
		}},
	}[r.Method+" "+path]
	switch {
	case !known:
		a.t.Errorf("ARM does not know %s %s", r.Method, r.URL)
		refuse(http.StatusBadRequest, "UnknownToTheTest", path)
	case slices.Contains(a.Denied, call.right):
		a.deny(w, call.right, site.ID)
	case strings.HasPrefix(path, "/functions/") && site.Keys == nil:
		refuse(http.StatusNotFound, "NotFound", "Function 'Ops' not found.")
	default:
		require.NoError(a.t, json.NewEncoder(w).Encode(call.answer()))
	}
}

func (a *ARM) refuse(w http.ResponseWriter, status int, code, message string) {
	w.WriteHeader(status)
	said := map[string]string{"code": code, "message": message + a.Secret}
	_ = json.NewEncoder(w).Encode(map[string]any{"error": said})
}

func (a *ARM) deny(w http.ResponseWriter, right, scope string) {
	a.refuse(w, http.StatusForbidden, "AuthorizationFailed", fmt.Sprintf(
		"The client 'ann@example.com' with object id '%s' does not have authorization to perform action '%s' over scope '%s' or the scope is invalid.",
		a.Person, right, scope))
}

// other answers one of Others.
func (a *ARM) other(w http.ResponseWriter, r *http.Request, scope string, answer Answer) {
	if got := r.URL.Query().Get("api-version"); got != answer.Version {
		a.t.Errorf("ARM is asked for %s with another version: %s", r.URL, got)
	}
	if got := r.URL.Query().Get("$filter"); got != answer.Filter || strings.Contains(r.URL.RawQuery, "+") {
		a.t.Errorf("ARM is asked for %s with another filter, or a space that is not %%20: %s", r.URL, got)
	}
	switch {
	case slices.Contains(a.Denied, answer.Right):
		a.deny(w, answer.Right, scope)
	case answer.Status != 0:
		a.refuse(w, answer.Status, "Refused", answer.Body)
	default:
		_, _ = io.WriteString(w, answer.Body)
	}
}

// list answers a list of resources by type and name.
func (a *ARM) list(w http.ResponseWriter, r *http.Request) {
	if r.URL.Query().Get("api-version") != "2021-04-01" || strings.Contains(r.URL.RawQuery, "+") {
		a.t.Errorf("ARM is asked with another version, or a space that the vendor's clients write as %%20: %s", r.URL)
	}
	found := []map[string]string{}
	for _, s := range a.Sites {
		name := s.ID[strings.LastIndex(s.ID, "/")+1:]
		if strings.HasPrefix(s.ID, "/subscriptions/"+a.Subscription+"/") &&
			r.URL.Query().Get("$filter") == "resourceType eq 'Microsoft.Web/sites' and name eq '"+name+"'" {
			found = append(found, map[string]string{"id": s.ID, "name": name, "type": "Microsoft.Web/sites"})
		}
	}
	for _, id := range a.Resources {
		parts := strings.Split(id, "/")
		name, kind := parts[len(parts)-1], strings.Join(parts[len(parts)-3:len(parts)-1], "/")
		if r.URL.Query().Get("$filter") == "resourceType eq '"+kind+"' and name eq '"+name+"'" {
			found = append(found, map[string]string{"id": id, "name": name, "type": kind})
		}
	}
	require.NoError(a.t, json.NewEncoder(w).Encode(map[string]any{"value": found}))
}
