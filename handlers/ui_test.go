package handlers

import (
	"context"
	"encoding/base64"
	"errors"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"sqlwriter/internal/fault"
	"sqlwriter/internal/ops"
	"sqlwriter/internal/opsapi"
	"sqlwriter/internal/ui"
)

func operator() string { return person("name", "Ann", "roles", "Operator") }

func TestThePagesAreText(t *testing.T) {
	o, _ := operated(t)
	got := get("").as(operator()).call(t, signedInUI(o))
	require.Equal(t, "200", got.Status, got.Body)
	require.Equal(t, "text/html; charset=utf-8", got.Headers["Content-Type"])
	require.Equal(t, "no-store", got.Headers["Cache-Control"])
	require.Contains(t, got.Headers["Content-Security-Policy"], "default-src 'none'")
	require.Contains(t, got.Body, "<!doctype html>")
	require.Contains(t, got.Body, `href="/api/ui/documents"`)
	require.Contains(t, got.log, `"call":"page overview"`)
	require.NotContains(t, got.log, "Ann")

	style := between(got.Body, `<link rel="stylesheet" href="/api/ui/`, `"`)
	got = get(style).as(`null`).call(t, signedInUI(o))
	require.Equal(t, "200", got.Status, "the files that pages use have no secret")
	require.Contains(t, got.Headers["Cache-Control"], "immutable")
	require.Equal(t, "404",
		get("assets/style-000000000000.css").as(operator()).call(t, signedInUI(o)).Status)
	require.Equal(t, "404",
		get("nothing").as(operator()).call(t, signedInUI(o)).Status)
	require.Equal(t, "405", opsCall{method: "DELETE", path: "", identities: operator()}.call(t, signedInUI(o)).Status)
	require.Equal(t, "200", opsCall{method: "HEAD", path: "", identities: operator()}.call(t, signedInUI(o)).Status)
}

func TestWhoHasNotSignedInIsSentThere(t *testing.T) {
	o, _ := operated(t)
	ask := func(c opsCall) called { return c.call(t, signedInUI(o)) }
	got := ask(get("documents?line=7&code=key-marker").as(`null`))
	require.Equal(t, "302", got.Status)
	require.Equal(t, "/.auth/login/aad?post_login_redirect_uri=%2Fapi%2Fui%2Fdocuments%3Fline%3D7",
		got.Headers["Location"], "without the key")
	script := map[string]string{"Sec-Fetch-Dest": "empty"}
	require.Equal(t, "401", ask(opsCall{method: "GET", identities: `null`, headers: script}).Status,
		"a script cannot follow the way to the sign-in")
	require.Equal(t, "401", ask(post("pause", "").as(`null`)).Status)
	require.Equal(t, "302", ask(get("").as(keyed("default"))).Status, "a key is no sign-in")
	forged := map[string]string{
		"X-MS-CLIENT-PRINCIPAL": "eyJhdXRoX3R5cCI6ImFhZCJ9", "X-MS-CLIENT-PRINCIPAL-NAME": "Ann",
	}
	require.Equal(t, "302", ask(opsCall{method: "GET", identities: `null`, headers: forged}).Status,
		"a header is no identity")
	got = ask(get("").as(person("name", "Ann", "oid", "1")))
	require.Equal(t, "403", got.Status)
	require.Contains(t, got.Body, "an administrator assigns Reader or Operator")
	require.NotContains(t, got.Body, "<nav", "nothing is shown to who may see nothing")
}

// Doctor forges a sign-in as anybody can, and would see pages that believe it.
func TestAForgedSignInIsSeen(t *testing.T) {
	o, _ := operated(t)
	believes := operators{
		name: "Ui", route: "/ui/", prefix: apiPrefix, longest: maxForm, open: opened(o),
		who: func(r opsRequest) (opsapi.Who, error) {
			text, err := base64.StdEncoding.DecodeString(r.header("X-MS-CLIENT-PRINCIPAL"))
			require.NoError(t, err)
			require.Contains(t, string(text), `"val":"Operator"`)
			return opsapi.Who{Name: r.header("X-MS-CLIENT-PRINCIPAL-NAME"), Role: opsapi.Operator}, nil
		},
	}.mounted()
	pages := func(access UIAccess) Mounted { return UI(opened(o), ui.New(ui.Options{SysName: "web"}), access) }
	for name, c := range map[string]struct {
		ui   Mounted
		want bool
	}{
		"signed in": {pages(UIAccess{SignIn: true}), false}, "off": {pages(UIAccess{}), false},
		"open on this machine": {pages(UIAccess{Open: true}), false}, "believes": {believes, true},
	} {
		got, err := BelievesForged(t.Context(), c.ui)
		require.NoError(t, err, name)
		require.Equal(t, c.want, got, name)
	}
}

func TestThePagesAreOffWithoutAuthentication(t *testing.T) {
	o, _ := operated(t)
	off := UI(opened(o), ui.New(ui.Options{SysName: "web"}), UIAccess{})
	got := get("").as(operator()).call(t, off)
	require.Equal(t, "403", got.Status)
	require.Contains(t, got.log, `"kind":"request","http_status":403`, "nothing failed, and anybody can ask")
	require.Contains(t, got.Body, "WEBSITE_AUTH_ENABLED")
	require.Contains(t, got.Body, "docs/settings.md, Sign-in")
}

// UI_AUTH=none is for the machine's own browser: a name of another site that points to this machine is refused.
func TestOpenPagesAnswerOnLoopbackOnly(t *testing.T) {
	o, store := operated(t)
	open := UI(opened(o), ui.New(ui.Options{SysName: "web"}), UIAccess{Open: true})
	for address, want := range map[string]int{
		"http://localhost:7071/api/ui/": 200, "http://127.0.0.1:7071/api/ui": 200, "http://[::1]:7071/api/ui/": 200,
		"http://LOCALHOST/api/ui/":    200,
		"http://evil.example/api/ui/": 403, "http://192.168.1.7:7071/api/ui/": 403,
		"http://localhost.evil.example/api/ui/": 403, "": 403,
	} {
		got, _, err := readPage([]byte(`{"Url":"` + address + `","Method":"GET"}`))
		require.NoError(t, err)
		_, refused := UIAccess{Open: true}.who(got)
		require.Equal(t, want == 200, refused == nil, address)
	}
	got := get("").as(`null`).call(t, open)
	require.Equal(t, "403", got.Status, "the address of a function app")
	require.Contains(t, got.Body, "loopback")
	require.Empty(t, store.Audits())
}

func TestTheRootOfThePages(t *testing.T) {
	for address, want := range map[string][2]string{
		"https://app/api/ui":                {"/api/ui/", ""},
		"https://app/api/ui/":               {"/api/ui/", ""},
		"https://app/API/Ui/Documents?id=1": {"/API/Ui/", "documents"},
		"https://app/ui/run/":               {"/ui/", "run"},
		"http://10.0.0.1/x/ui/ui":           {"/x/ui/", "ui"},
		"%":                                 {"/api/ui/", ""},
	} {
		r, root, err := readPage([]byte(`{"Url":"` + address + `"}`))
		require.NoError(t, err)
		require.Equal(t, want, [2]string{root, r.path}, address)
	}
	_, _, err := readPage([]byte(`[]`))
	var payload *PayloadError
	require.ErrorAs(t, err, &payload)
}

// An action is a form from our own page. Everything else changes nothing.
func TestAPageActsOnlyOnAFormOfOurOwn(t *testing.T) {
	o, store := operated(t)
	const form = "application/x-www-form-urlencoded"
	own := map[string]string{"Sec-Fetch-Site": "same-origin"}
	for name, c := range map[string]struct {
		call   opsCall
		status string
	}{
		"another site": {
			opsCall{body: "why=w", media: form, headers: map[string]string{"Sec-Fetch-Site": "cross-site"}}, "403",
		},
		"a forged origin": {
			opsCall{
				body: "why=w", media: form, headers: map[string]string{"Origin": "https://operators.example.com.evil"},
			}, "403",
		},
		"JSON":              {opsCall{body: `{"why":"w"}`, headers: own}, "400"},
		"no form":           {opsCall{body: "why=%zz", media: form, headers: own}, "400"},
		"too much":          {opsCall{body: "why=" + strings.Repeat("w", maxForm), media: form, headers: own}, "400"},
		"a page that shows": {opsCall{body: "why=w", media: form, headers: own}, "405"},
	} {
		c.call.method, c.call.identities = "POST", operator()
		got := c.call.call(t, signedInUI(o))
		require.Equal(t, c.status, got.Status, "%s: %s", name, got.Body)
	}
	require.Empty(t, store.Audits())
}

func TestAPageWhoseUseCasesAreAway(t *testing.T) {
	away := func(err error) Mounted {
		return UI(func(context.Context) (*ops.Ops, error) {
			return nil, err
		}, ui.New(ui.Options{}), UIAccess{SignIn: true})
	}
	got := get("").as(operator()).call(t, away(fault.New(fault.Infrastructure, "test", "refused", "nobody listens")))
	require.Equal(t, "503", got.Status)
	require.Contains(t, got.Body, "nobody listens")
	require.Contains(t, got.log, `"code":"refused"`)
	got = get("").as(operator()).call(t, away(errors.New("key-marker")))
	require.Equal(t, "500", got.Status)
	require.NotContains(t, got.log+got.Body, "key-marker")
	require.Equal(t, http.StatusText(http.StatusInternalServerError), between(got.Body, "<h1>", "</h1>"))
}

// between is the text between two others.
func between(text, from, to string) string {
	_, text, _ = strings.Cut(text, from)
	text, _, _ = strings.Cut(text, to)
	return text
}
