package handlers

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http/httptest"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/rs/zerolog"
	"github.com/stretchr/testify/require"

	"sqlwriter/internal/ops"
)

// posted are the posts of HTTP functions that the real host sent (test/emulators/funchost/testdata/README.md).
func posted(t *testing.T) map[string][2]string {
	t.Helper()
	out := map[string][2]string{}
	for _, file := range []string{"http-requests.jsonl", "http-identity.jsonl"} {
		f, err := os.Open("../test/emulators/funchost/testdata/" + file)
		require.NoError(t, err)
		defer func() { _ = f.Close() }()
		for d := json.NewDecoder(f); d.More(); {
			var c struct {
				Case   string
				Posted []struct{ URL, Body string }
			}
			require.NoError(t, d.Decode(&c))
			for _, p := range c.Posted {
				if !strings.HasSuffix(p.Body, " characters") { // recorded in full
					out[file+" "+c.Case] = [2]string{
						p.URL, strings.ReplaceAll(p.Body, `"Params":{"path":"`, `"Params":{"path":"v1/`),
					}
				}
			}
		}
	}
	require.Len(t, out, 39)
	return out
}

// No post of the real host is taken for a browser's, whatever headers its caller sent: those are in the body.
func TestThePostsOfTheRealHostAreTheHosts(t *testing.T) {
	seen := 0
	for _, file := range []string{"http-requests.jsonl", "http-identity.jsonl", "cosmos.jsonl", "timer.jsonl"} {
		f, err := os.Open("../test/emulators/funchost/testdata/" + file)
		require.NoError(t, err)
		defer func() { _ = f.Close() }()
		for d := json.NewDecoder(f); d.More(); {
			type post struct{ Headers [][2]string }
			var c struct {
				post

				Posted []post
			}
			require.NoError(t, d.Decode(&c))
			if c.Headers != nil {
				c.Posted = append(c.Posted, c.post)
			}
			for _, p := range c.Posted {
				r := httptest.NewRequest("POST", "/", nil)
				for _, h := range p.Headers {
					r.Header.Set(h[0], h[1])
				}
				r.Host = strings.Replace(r.Header.Get("Host"), "PORT", "40001", 1)
				require.True(t, isHost(r), "%s: %v", file, p.Headers)
				seen++
			}
		}
	}
	require.Equal(t, 60, seen)
}

var metadataOf = regexp.MustCompile(`,"Metadata":\{.*\}\}$`)

// forged is Metadata as a caller may have it (docs/facts.md F13).
const forged = `,"Metadata":{"RetryContext":{"RetryCount":99,"MaxRetryCount":-1,"Exception":null},"path":"\"pause\"","Query":{"id":"forged"},` +
	`"Headers":{"Content-Type":"text/plain"},"sys":{"MethodName":"Health"},"$sys":{"MethodName":"Ops"},"req":{"Method":"POST","Params":{"path":"pause"}}}}`

func TestNothingIsDecidedFromMetadataInAnHTTPFunction(t *testing.T) {
	call := func(url, body string) string {
		var r recorder
		var log bytes.Buffer
		o, _ := operated(t)
		h := Mount(
			[]Mounted{
				Health(func() HealthReport { return HealthReport{Status: StatusReady} }),
				Ops(opened(o)), r.echo("Web", "req"),
			},
			Options{Log: zerolog.New(&log), Now: clock})
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequest("POST", host+url, strings.NewReader(body)))
		require.Equal(t, 200, w.Code)
		return r.seen.String() + "|" + w.Body.String() + "|" + log.String()
	}
	for name, p := range posted(t) {
		require.Regexp(t, metadataOf, p[1], name)
		for _, url := range []string{p[0], "/Web"} {
			as := call(url, p[1])
			require.Equal(t, as, call(url, metadataOf.ReplaceAllString(p[1], "}")), "%s: without Metadata", name)
			require.Equal(t, as, call(url, metadataOf.ReplaceAllLiteralString(p[1], forged)),
				"%s: with forged Metadata", name)
		}
	}
}

// The key stands in Url, Query, Headers and Metadata of a post, a sign-in in a header; neither gets out again, whatever
// fails.
func TestNoKeyReachesALogOrAReply(t *testing.T) {
	const key, signIn = "the-key-0123456789", "eyJhdXRoX3R5cCI6"
	healthy := func() HealthReport { return HealthReport{Status: StatusReady} }
	var r recorder
	o, _ := operated(t)
	for how, functions := range map[string][]Mounted{
		"works": {Health(healthy), Ops(opened(o))},
		"fails": {Health(healthy), Ops(func(context.Context) (*ops.Ops, error) { return nil, os.ErrInvalid })},
		"panics": {
			Health(func() HealthReport { panic("health") }),
			Ops(func(context.Context) (*ops.Ops, error) { panic("ops") }),
		},
		// The payload is not what the function expects.
		"refuses": {
			{Name: "Health", Binding: "other", Payload: Object, Run: CommitResults(&r).Run},
			{Name: "Ops", Binding: "req", Payload: Array, Run: CommitResults(&r).Run},
		},
	} {
		var log bytes.Buffer
		h := Mount(functions, Options{Log: zerolog.New(&log), Now: clock})
		keys := 0
		for name, p := range posted(t) {
			body := strings.ReplaceAll(p[1], "KEY", key)
			keys += strings.Count(body, key)
			for _, text := range []string{
				body, body[:len(body)-9], strings.Replace(body, `"Url"`, `"Url":7,"x"`, 1),
				strings.Replace(body, `"Params":{"path":`, `"Params":{"path":"v1/`+key+`","x":`, 1),
			} {
				w := httptest.NewRecorder()
				h.ServeHTTP(w, httptest.NewRequest("POST", host+p[0], strings.NewReader(text)))
				require.NotContains(t, w.Body.String(), key, "%s %s", name, how)
				require.NotContains(t, w.Body.String(), signIn, "%s %s", name, how)
			}
		}
		require.Greater(t, keys, 50, "the posts have keys")
		require.NotContains(t, log.String(), key, how)
		require.NotContains(t, log.String(), signIn, how)
		require.Contains(t, log.String(), `"function":"Ops"`)
	}
}
