package funchost

import (
	"encoding/json"
	"io"
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

func TestHTTPBodyRules(t *testing.T) {
	b := start(t, newRoot(t).function("F", web(anyone)))
	for i, c := range []struct {
		body        io.Reader
		contentType string
		want        any
	}{
		{reader2("text"), "text/plain", "text"},
		{reader2("\x00\xff"), "application/octet-stream", "AP8="},
		{reader2("--x--"), "multipart/form-data; boundary=x", "LS14LS0="},
		{nil, "text/plain", nil},
		{reader2(""), "text/plain", nil},
		{struct{ io.Reader }{reader2("chunked: its length is unknown")}, "text/plain", nil},
	} {
		b.request("POST", "/api/F", c.body, "Content-Type", c.contentType)
		got := requestOf(t, b.control.seen()[i])
		body, there := got["Body"]
		require.Equal(t, c.want != nil, there, "%d: absent, not null", i)
		require.Equal(t, c.want, body)
	}
}

// What the recordings do not have (TestRecordedHTTPReplies).
func TestHTTPReplies(t *testing.T) {
	b := start(t, newRoot(t).function("F", web(anyone)))
	for reply, want := range map[string]string{
		`{"Outputs":{"res":"{\"statusCode\":200,\"body\":\"an object in a text\"}"}}`:   "an object in a text",
		`{"Outputs":{"res":{"body":"test1234"}}}`:                                       "test1234",
		`{"Outputs":{"res":{"body":"of this length","headers":{"Content-Length":14}}}}`: "of this length",
		`{"Outputs":{"res":{"body":{"a":[1e21,0.5,9007199254740993]}}}}`:                "{\n  \"a\": [\n    1E+21,\n    0.5,\n    9007199254740993\n  ]\n}",
	} {
		b.control.inOrder(answer{contentType: "application/json", body: reply})
		code, body, header := b.request("GET", "/api/F", nil)
		require.Equal(t, 200, code)
		require.Equal(t, want, body)
		require.Equal(t, plainType, header.Get("Content-Type"))
	}
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
		function("Param", web(anyone+`,"route":"ops/{name}"`)).
		function("Number", web(anyone+`,"route":"ops/{id:int}"`)).
		function("Optional", web(anyone+`,"route":"opt/{name?}"`)).
		function("Rest", web(anyone+`,"route":"ops/{*path}"`)).
		function("OnlyPost", web(anyone+`,"route":"posts","methods":["post"]`)))
	for _, c := range []struct {
		method, path string
		function     string // "" = 404
	}{
		{"GET", "/api/ByName", "ByName"},
		{"GET", "/api/byname", "ByName"},
		{"DELETE", "/api/ByName", "ByName"},
		{"GET", "/ByName", ""},
		{"GET", "/api/ByName/x", ""},
		{"GET", "/api/Other", ""},
		{"GET", "/api/ops/status", "Literal"},
		{"GET", "/api/ops/x", "Param"},
		{"GET", "/api/ops/7", "Number"},
		{"GET", "/api/ops/x/y", "Rest"},
		{"GET", "/api/ops", "Rest"},
		{"GET", "/api/opt", "Optional"},
		{"GET", "/api/opt/x", "Optional"},
		{"POST", "/api/posts", "OnlyPost"},
		{"GET", "/api/posts", ""},
	} {
		before := len(b.control.seen())
		code, _, _ := b.request(c.method, c.path, nil)
		calls := b.control.seen()[before:]
		if c.function == "" {
			require.Equal(t, 404, code, "%s %s", c.method, c.path)
			require.Empty(t, calls)
			continue
		}
		require.Equal(t, 204, code, "%s %s: the reply {} is no content", c.method, c.path)
		require.Equal(t, c.function, calls[0].Function, "%s %s", c.method, c.path)
	}
}

func TestHTTPKeys(t *testing.T) {
	b := start(t,
		newRoot(t).function("Open", web(anyone)).function("Fn", web("")).function("Fn2",
			web(`,"authLevel":"function"`)).
			function("Adm", web(`,"authLevel":"admin"`)),
		with(func(o *Options) { o.Keys = Keys{Master: "m", Host: "h", Functions: map[string]string{"Fn": "f"}} }))
	for _, c := range []struct {
		name, key string
		want      int
	}{
		{"Open", "", 204},
		{"Open", "wrong", 204},
		{"Fn", "", 401},
		{"Fn", "wrong", 401},
		{"Fn", "f", 204},
		{"Fn", "h", 204},
		{"Fn", "m", 204},
		{"Fn2", "f", 401},
		{"Fn2", "h", 204},
		{"Adm", "", 401},
		{"Adm", "f", 401},
		{"Adm", "h", 401},
		{"Adm", "m", 204},
	} {
		code, _, _ := b.request("GET", "/api/"+c.name, nil, "x-functions-key", c.key)
		require.Equal(t, c.want, code, "%s with %q in the header", c.name, c.key)
		code, _, _ = b.request("GET", "/api/"+c.name+"?code="+c.key, nil)
		require.Equal(t, c.want, code, "%s with %q in the query", c.name, c.key)
	}
	code, _, _ := b.request("GET", "/api/Fn?code=f", nil, "x-functions-key", "wrong")
	require.Equal(t, 401, code, "the header comes first")
}

func TestHTTPWithoutKeysNothingMatches(t *testing.T) {
	b := start(t, newRoot(t).function("Fn", web("")))
	code, _, _ := b.request("GET", "/api/Fn?code=", nil)
	require.Equal(t, 401, code)
	require.Empty(t, b.control.seen())
}

func TestHostPaths(t *testing.T) {
	b := start(t, newRoot(t).function("F", web("")), with(masterKey))
	code, body, _ := b.request("GET", "/", nil)
	require.Equal(t, 200, code)
	require.Contains(t, body, "up and running")
	code, _, _ = b.request("GET", "/admin/host/status", nil)
	require.Equal(t, 401, code)
	code, body, _ = b.request("GET", "/admin/host/status", nil, "x-functions-key", "m")
	require.Equal(t, 200, code)
	var status map[string]any
	require.NoError(t, json.Unmarshal([]byte(body), &status))
	require.Equal(t, "Running", status["state"])
	code, _, _ = b.request("GET", "/admin/host/ping", nil)
	require.Equal(t, 200, code)
	code, _, _ = b.request("POST", "/admin/functions/F", reader2("{"), "x-functions-key", "m")
	require.Equal(t, 400, code)
	code, _, _ = b.request("POST", "/admin/functions/F", reader2(`{"input":"hi"}`), "x-functions-key", "m")
	require.Equal(t, 202, code)
	require.Equal(t, "hi", requestOf(t, b.control.wait(t, 1)[0])["Body"])
}
