package browser_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/require"

	"sqlwriter/test/browser"
)

// A tab tells what a person would notice, or a careful one; a test of a page can lean on it.
func TestATabTellsWhatIsWrong(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		w.Header().Set("Content-Security-Policy", "default-src 'none'; script-src 'self'")
		switch r.URL.Path {
		case "/assets/script.js":
			_, _ = fmt.Fprint(w,
				`document.querySelector("h1").textContent += ", by script"; console.warn("a warning", 7); throw new Error("thrown")`)
		case "/next":
			w.WriteHeader(http.StatusForbidden)
			_, _ = fmt.Fprint(w, "no")
		default:
			_, _ = fmt.Fprintf(w,
				`<!doctype html><html lang="en"><head><meta name="viewport" content="width=device-width"><title>x</title></head><body><main>
				<h1>Hello %s</h1><p id="late"></p><p style="color:red">refused</p><p><a href="next">next</a> <input></p><svg width="500" height="10"></svg></main>
				<script src="/assets/script.js"></script></body></html>`, r.Header.Get("X-Who"))
		}
	}))
	t.Cleanup(server.Close)
	b := browser.Start(t)

	tab := b.Open(t, server.URL, browser.Look{Headers: map[string]string{"X-Who": "Ann"}})
	require.Equal(t, "Hello Ann, by script", tab.Text("h1"))
	said := fmt.Sprint(tab.Messages())
	require.Contains(t, said, "inline style")
	require.Contains(t, said, `warning: "a warning" 7`)
	require.Contains(t, said, "Error: thrown")
	found := fmt.Sprint(tab.Violations())
	require.Contains(t, found, "label (critical)", "the field has no label")
	require.Empty(t, tab.Sideways())
	tab.Resize(browser.Phone)
	require.Contains(t, tab.Sideways()[0], "svg", "the picture is wider than the window")
	require.Equal(t, int64(http.StatusForbidden), tab.Follow("a"))
	require.Equal(t, server.URL+"/next", tab.Address())

	plain := b.Open(t, server.URL, browser.Look{NoScript: true, Dark: true})
	require.Equal(t, "Hello", plain.Text("h1"))
	require.NotEmpty(t, plain.Violations(), "the checker works all the same")
	plain.Go(server.URL)
	require.Equal(t, "Hello", plain.Text("h1"), "and the page's own scripts stay off")
	require.True(t, browser.Eval[bool](plain, `matchMedia("(prefers-color-scheme: dark)").matches`))
}

// The browser knows no name but localhost: a page that asked somebody else would fail, and no test depends on the world
// outside.
func TestNobodyElseIsAsked(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		_, _ = fmt.Fprint(w, `<!doctype html><title>x</title><h1>x</h1>`)
	}))
	t.Cleanup(server.Close)
	tab := browser.Start(t).Open(t, server.URL, browser.Look{})
	ask := func(host string) string {
		return browser.Eval[string](tab,
			`fetch("http://`+host+`:" + location.port, {mode: "no-cors"}).then(() => "answered", () => "refused")`)
	}
	require.Equal(t, "answered", ask("localhost"))
	require.Equal(t, "refused", ask("other.localhost")) // it is this machine, but not by this name
}
