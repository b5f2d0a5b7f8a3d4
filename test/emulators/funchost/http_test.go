package funchost

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// web is an HTTP function with further properties of its trigger.
func web(properties string) string {
	return `{"bindings":[{"type":"httpTrigger","name":"req"` + properties +
		`},{"type":"http","name":"res","direction":"out"}]}`
}

const anyone = `,"authLevel":"anonymous"`

func requestOf(t *testing.T, c call) map[string]any {
	t.Helper()
	var body struct{ Data map[string]map[string]any }
	require.NoError(t, json.Unmarshal(c.Body, &body))
	return body.Data["req"]
}

// A caller can forge whatever Metadata says (docs/facts.md F13); Data.req is the truth.
func TestACallerForgesMetadata(t *testing.T) {
	b := start(t, newRoot(t).function("F", web(anyone)))
	b.request("POST", "/api/F?Query=q",
		reader2(`{"RetryContext":{"RetryCount":7},"Headers":"h","sys":{"MethodName":"Mine"},"code":"c","req":"r"}`))
	c := b.control.seen()[0]
	metadata := c.metadata(t)
	require.Equal(t, map[string]any{"RetryCount": 7.0}, metadata["RetryContext"])
	require.Equal(t, `"h"`, metadata["Headers"])
	require.Equal(t, `"q"`, metadata["Query"])
	require.Equal(t, map[string]any{"MethodName": "Mine"}, metadata["sys"])
	require.Equal(t, "F", metadata["$sys"].(map[string]any)["MethodName"])
	require.Equal(t, `"c"`, metadata["code"], "left out of the query only")
	require.NotContains(t, metadata, "req")
	require.Equal(t, map[string]any{"Query": "q"}, requestOf(t, c)["Query"])
}

// One connection, several requests: each has its own head, also behind a body that nobody read.
func TestHeadersKeepTheirSpellingOnOneConnection(t *testing.T) {
	b := start(t, newRoot(t).function("F", web(anyone)))
	client := &http.Client{Transport: &http.Transport{MaxConnsPerHost: 1}}
	t.Cleanup(client.CloseIdleConnections)
	for i, path := range []string{"/api/F", "/api/nothing", "/api/F"} {
		r, err := http.NewRequestWithContext(t.Context(), "POST", "http://"+b.Address()+path,
			reader2(strings.Repeat("x-lower: 9\r\n\r\n", 9000)))
		require.NoError(t, err)
		r.Header["x-lower"] = []string{itoa(i)}
		response, err := client.Do(r)
		require.NoError(t, err)
		require.NoError(t, response.Body.Close())
	}
	for i, c := range b.control.seen() {
		require.Equal(t, []any{itoa(2 * i)}, requestOf(t, c)["Headers"].(map[string]any)["x-lower"])
	}
	require.Len(t, b.control.seen(), 2)
}

func TestHTTPRoutes(t *testing.T) {
	b := start(t, newRoot(t).
		function("ByName", web(anyone)).
		function("Literal", web(anyone+`,"route":"ops/status"`)).
		function("Rest", web(anyone+`,"route":"ops/{*path}"`)).
		function("OnlyPost", web(anyone+`,"route":"posts","methods":["post"]`)))
	for request, want := range map[string]string{ // "" = 404
		"GET /api/ByName": "ByName", "DELETE /api/byname": "ByName", "GET /ByName": "", "GET /api/ByName/x": "",
		"GET /api/Other": "", "GET /api/ops/status": "Literal", "GET /api/ops/x/y": "Rest", "GET /api/ops": "Rest",
		"POST /api/posts": "OnlyPost", "GET /api/posts": "", "GET /": "-",
	} {
		before := len(b.control.seen())
		method, path, _ := strings.Cut(request, " ")
		code, _, _ := b.request(method, path, nil)
		calls := b.control.seen()[before:]
		switch want {
		case "":
			require.Equal(t, 404, code, request)
		case "-":
			require.Equal(t, 200, code, request)
		default:
			require.Equal(t, 204, code, "%s: the reply {} is no content", request)
			require.Equal(t, want, calls[0].Function, request)
			continue
		}
		require.Empty(t, calls)
	}
}

func TestHTTPKeys(t *testing.T) {
	b := start(t,
		newRoot(t).function("Open", web(anyone)).function("Fn", web("")).function("Fn2", web(`,"authLevel":"function"`)).
			function("Adm", web(`,"authLevel":"admin"`)),
		with(func(o *Options) {
			o.Keys = Keys{
				Master: "m", Host: "h", Named: map[string]string{"operator": "n"},
				Functions: map[string]string{"Fn": "f"},
			}
		}))
	for name, opening := range map[string]string{"Open": "-wfhnm", "Fn": "fhnm", "Fn2": "hnm", "Adm": "m"} {
		for _, key := range []string{"-", "w", "f", "h", "n", "m"} {
			want := map[bool]int{true: 204, false: 401}[strings.Contains(opening, key)]
			sent := strings.TrimPrefix(key, "-")
			code, _, _ := b.request("GET", "/api/"+name, nil, "x-functions-key", sent)
			require.Equal(t, want, code, "%s with %q in the header", name, sent)
			code, _, _ = b.request("GET", "/api/"+name+"?code="+sent, nil)
			require.Equal(t, want, code, "%s with %q in the query", name, sent)
		}
	}
	code, _, _ := b.request("GET", "/api/Fn?code=f", nil, "x-functions-key", "wrong")
	require.Equal(t, 401, code, "the header comes first")
}
