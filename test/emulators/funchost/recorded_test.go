package funchost

import (
	"bufio"
	"cmp"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// The files of testdata hold what the real host 4.1037.0 posted to a handler and answered to a client
// (testdata/README.md). The tests of this file and of recorded_feed_test.go send the emulator the same and compare byte
// for byte. On both sides ids, the handler's port and the time of the call are replaced. The order of a post's HTTP
// headers is not compared: Go's client sorts them, and it means nothing. Names of headers are compared without case
// where a client gets them.

// differs are the cases that are not the same on purpose. What is left of them is compared.
var differs = map[string]string{
	"root": "the real page has 149,794 bytes; the emulator's has its title only",
}

// wire is a request or a reply on the client's side.
type wire struct {
	Method, Path string
	Status       int
	Headers      [][2]string
	Body         *string
	Broken       string
}

type recordedPost struct {
	URL     string `json:"url"`
	Headers [][2]string
	Body    string
}

// recordedCase is a line of http-requests.jsonl, http-replies.jsonl or http-identity.jsonl.
type recordedCase struct {
	Case    string
	Client  wire
	Posted  []recordedPost
	Handler *struct {
		Status  int
		Headers map[string]string
		Body    string
	}
	ClientGot     wire        `json:"client_got"`
	ClientHeaders [][2]string `json:"client_headers"`
}

func readRecorded[T any](t *testing.T, file string, count int) []T {
	t.Helper()
	f, err := os.Open("testdata/" + file)
	require.NoError(t, err)
	defer func() { _ = f.Close() }()
	var out []T
	for d := json.NewDecoder(f); d.More(); {
		var one T
		require.NoError(t, d.Decode(&one))
		out = append(out, one)
	}
	require.Len(t, out, count)
	return out
}

var (
	anyGUID = regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}`)
	anyNow  = regexp.MustCompile(`(\\?"UtcNow\\?":\\?")[^"\\]*`)
	anyPort = regexp.MustCompile(`127\.0\.0\.1:(\d+|PORT)`)
)

// replaced takes out what is another in every run.
func replaced(text string) string {
	text = anyGUID.ReplaceAllString(text, "GUID")
	text = anyNow.ReplaceAllString(text, "${1}NOW")
	return anyPort.ReplaceAllString(text, "127.0.0.1:PORT")
}

// sorted gives headers a certain order.
func sorted(headers [][2]string, name func(string) string) []string {
	var out []string
	for _, h := range headers {
		out = append(out, replaced(name(h[0])+": "+h[1]))
	}
	slices.Sort(out)
	return out
}

// headers are those of the post that the handler got.
func (c call) headers() [][2]string {
	out := [][2]string{{"Host", c.Header.Get("X-Was-Host")}, {"Transfer-Encoding", c.Header.Get("X-Was-Encoding")}}
	for name, values := range c.Header {
		if own := []string{"X-Was-Host", "X-Was-Encoding", "X-Handler-Pid"}; slices.Contains(own, name) {
			continue
		}
		for _, value := range values {
			out = append(out, [2]string{name, value})
		}
	}
	return out
}

// postedAs compares a post with the recorded one.
func postedAs(t *testing.T, want recordedPost, got call) {
	t.Helper()
	require.Equal(t, want.URL, "/"+got.Function)
	same := func(name string) string { return http.CanonicalHeaderKey(name) } // relayed by Go's server, which spells so
	require.Equal(t, sorted(want.Headers, same), sorted(got.headers(), same))
	if head, cut, long := strings.Cut(want.Body, "... "); long { // the recording is shortened
		// It was counted before the key of 56 characters (twice) and the address (three times) were replaced.
		const before = 2*(56-len("KEY")) + 3*(len("127.0.0.1")-len("app.example"))
		same := anyNow.ReplaceAllString(string(got.Body), "${1}2026-11-22T08:00:00.1234567Z")
		require.Equal(t, cut, fmt.Sprintf("%d characters", len(same)+before))
		require.Equal(t, head, same[:len(head)])
		return
	}
	require.Equal(t, replaced(want.Body), replaced(string(got.Body)))
}

// exchange sends a request as it was sent to the real host, over a connection of its own.
func exchange(t *testing.T, address string, request wire) wire {
	t.Helper()
	conn, err := new(net.Dialer).DialContext(t.Context(), "tcp", address)
	require.NoError(t, err)
	defer func() { _ = conn.Close() }()
	head := request.Method + " " + request.Path + " HTTP/1.1\r\nHost: app.example:7071\r\n"
	for _, h := range request.Headers {
		head += h[0] + ": " + h[1] + "\r\n"
	}
	var body string
	if request.Body != nil {
		body = *request.Body
		if digits, is := strings.CutPrefix(body, "hex:"); is {
			raw, err := hex.DecodeString(digits)
			require.NoError(t, err)
			body = string(raw)
		}
		if body == "300008 bytes" {
			body = `{"a":"` + strings.Repeat("x", 300_000) + `"}`
		}
		head += fmt.Sprintf("Content-Length: %d\r\n", len(body))
	}
	_, err = io.WriteString(conn, head+"\r\n"+body)
	require.NoError(t, err)
	response, err := http.ReadResponse(bufio.NewReader(conn), &http.Request{Method: request.Method})
	if err != nil {
		return wire{Broken: err.Error()}
	}
	defer func() { _ = response.Body.Close() }()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		return wire{Broken: err.Error()}
	}
	got := wire{Status: response.StatusCode, Body: new(string)}
	*got.Body = string(text)
	for name, values := range response.Header {
		for _, value := range values {
			got.Headers = append(got.Headers, [2]string{name, value})
		}
	}
	for _, value := range response.TransferEncoding {
		got.Headers = append(got.Headers, [2]string{"Transfer-Encoding", value})
	}
	return got
}

// gotAs compares what a client got with what it got from the real host, Date and Server left out.
func gotAs(t *testing.T, want, got wire) {
	t.Helper()
	if want.Broken != "" {
		require.NotEmpty(t, got.Broken, "a client cannot read this answer")
		return
	}
	require.Empty(t, got.Broken)
	require.Equal(t, want.Status, got.Status)
	got.Headers = slices.DeleteFunc(got.Headers, func(h [2]string) bool { return h[0] == "Date" || h[0] == "Server" })
	require.Equal(t, sorted(want.Headers, http.CanonicalHeaderKey), sorted(got.Headers, http.CanonicalHeaderKey))
	const cut = 1500 // characters of a body are recorded
	require.Equal(t, *want.Body, string([]rune(*got.Body)[:min(cut, len([]rune(*got.Body)))]))
}

// recordedHost has the two functions that the recordings call.
func recordedHost(t *testing.T, change ...func(*Host, *Options)) *bench {
	t.Helper()
	r := newRoot(t)
	for _, name := range []string{"Health", "Ops"} {
		text, err := os.ReadFile("../../../functions/" + name + "/function.json")
		require.NoError(t, err)
		// As it was when the real host was recorded.
		r.function(name,
			strings.Replace(string(text),
				`"get", "post", "head", "put", "patch", "delete", "options", "trace"`, `"get", "post"`, 1))
	}
	return start(t, r, append(change, with(func(o *Options) { o.Keys.Host = "KEY" }))...)
}

// replayed sends one case and compares posts and answer.
func (b *bench) replayed(t *testing.T, c recordedCase) {
	t.Helper()
	say := answer{
		contentType: "application/json",
		body:        `{"Outputs":{"res":{"statusCode":200,"body":"ok"}},"Logs":[],"ReturnValue":null}`,
	}
	if h := c.Handler; h != nil {
		say = answer{status: h.Status, contentType: h.Headers["Content-Type"], body: h.Body}
	}
	b.control.inOrder(say)
	before := len(b.control.seen())
	// http-replies.jsonl: each is the reply to a GET of health
	c.Client.Method = cmp.Or(c.Client.Method, http.MethodGet)
	c.Client.Path = cmp.Or(c.Client.Path, "/api/health")
	c.Client.Headers = append(c.Client.Headers, c.ClientHeaders...)
	got := exchange(t, b.Address(), c.Client)
	posts := b.control.seen()[before:]
	if c.Posted != nil {
		require.Len(t, posts, len(c.Posted))
		for i := range posts {
			postedAs(t, c.Posted[i], posts[i])
		}
	}
	if why := differs[c.Case]; why != "" {
		t.Log(why)
		require.Equal(t, c.ClientGot.Status, got.Status)
		require.Contains(t, got.Headers, [2]string{"Content-Type", "text/html"})
		require.Equal(t, (*c.ClientGot.Body)[:90], (*got.Body)[:90])
		return
	}
	gotAs(t, c.ClientGot, got)
}

func TestRecordedHTTPRequests(t *testing.T) {
	b := recordedHost(t)
	for _, c := range readRecorded[recordedCase](t, "http-requests.jsonl", 42) {
		t.Run(c.Case, func(t *testing.T) { b.replayed(t, c) })
	}
}

func TestRecordedHTTPReplies(t *testing.T) {
	b := recordedHost(t)
	for _, c := range readRecorded[recordedCase](t, "http-replies.jsonl", 95) {
		t.Run(c.Case, func(t *testing.T) { b.replayed(t, c) })
	}
}

func TestRecordedSignIn(t *testing.T) {
	on := recordedHost(t, with(func(o *Options) { o.Settings["WEBSITE_AUTH_ENABLED"] = "true" }))
	off := recordedHost(t)
	for _, c := range readRecorded[recordedCase](t, "http-identity.jsonl", 12) {
		t.Run(c.Case, func(t *testing.T) {
			b := off
			if strings.HasSuffix(c.Case, "authentication on") {
				b = on
			}
			b.replayed(t, c)
		})
	}
}
