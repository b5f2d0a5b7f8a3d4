package opsapi_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"sqlwriter/internal/invoice"
	"sqlwriter/internal/ops"
	"sqlwriter/internal/opsapi"
	"sqlwriter/internal/run"
)

var key = opsapi.Credential{Key: "key-marker"}

func TestTheKeyTravelsEncryptedAndNowhereElse(t *testing.T) {
	for _, address := range []string{
		"http://example.com", "example.com", "ftp://example.com", "https://u:p@example.com",
		"https://example.com?code=x", "https://",
	} {
		_, err := opsapi.Remote(address, key, nil)
		require.Error(t, err, address)
		require.NotContains(t, err.Error(), "code=x")
	}
	for _, address := range []string{
		"https://x.azurewebsites.net", "https://x/other/", "http://localhost:7071", "http://127.0.0.1:7071/",
	} {
		_, err := opsapi.Remote(address, key, nil)
		require.NoError(t, err)
	}
	asked := 0
	elsewhere := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { asked++ }))
	t.Cleanup(elsewhere.Close)
	redirecting := httptest.NewServer(http.RedirectHandler(elsewhere.URL, http.StatusTemporaryRedirect))
	t.Cleanup(redirecting.Close)
	c, err := opsapi.Remote(redirecting.URL, key, nil)
	require.NoError(t, err)
	_, err = opsapi.Do(t.Context(), c, opsapi.StatusGet, ops.StatusQuery{})
	require.ErrorContains(t, err, "307")
	require.Zero(t, asked)
}

func TestTheAppsErrorsArePassedOn(t *testing.T) {
	for name, c := range map[string]struct {
		status       int
		body         string
		want         []string
		lost, denied bool
	}{
		"down": {
			503, `{"detail":"stopped since then","kind":"infrastructure","code":"breaker_open"}`,
			[]string{"503", "stopped since then", "breaker_open"},
			false, false,
		},
		"no reason":    {502, `<html>`, []string{"502", "did not complete the request"}, true, false},
		"the host's":   {500, ``, []string{"500"}, true, false},
		"another form": {200, `[]`, []string{"this build does not understand the app's answer"}, false, false},
		"a teapot":     {418, ``, []string{"418"}, false, false},
		"no key":       {401, ``, []string{"401", "it is stopped, or the key or the token is not valid"}, false, true},
		"no role": {
			403, `{"detail":"run.start requires Operator","kind":"request","code":"denied"}`,
			[]string{"403", "requires Operator"},
			false, true,
		},
	} {
		t.Run(name, func(t *testing.T) {
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				w.WriteHeader(c.status)
				_, _ = io.WriteString(w, c.body)
			}))
			t.Cleanup(server.Close)
			remote, err := opsapi.Remote(server.URL, key, nil)
			require.NoError(t, err)
			_, err = opsapi.Do(t.Context(), remote, opsapi.RunStart, ops.StartRequest{})
			for _, says := range c.want {
				require.ErrorContains(t, err, says)
			}
			require.NotContains(t, err.Error(), "key-marker")
			var lost *opsapi.LostError
			require.Equal(t, c.lost, errors.As(err, &lost))
			var denied *opsapi.DeniedError
			require.Equal(t, c.denied, errors.As(err, &denied))
		})
	}
	remote, err := opsapi.Remote("http://127.0.0.1:1", key, nil)
	require.NoError(t, err)
	_, err = opsapi.Do(t.Context(), remote, opsapi.StatusGet, ops.StatusQuery{})
	require.ErrorContains(t, err, "the app did not answer")
}

// What a caller asks for arrives as it was written, at the function of its credential.
func TestARequestArrivesAsItWasWritten(t *testing.T) {
	at := time.Date(2026, 1, 2, 3, 4, 5, 6, time.FixedZone("", -6*3600))
	var seen any
	var path, credential string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		path, credential = r.URL.Path, r.Header.Get("X-Functions-Key")+r.Header.Get("Authorization")
		query := map[string]string{"code": "is the host's"}
		for name := range r.URL.Query() {
			query[name] = r.URL.Query().Get(name)
		}
		body, err := io.ReadAll(r.Body)
		require.NoError(t, err)
		for _, row := range opsapi.Table() {
			if row.Method == r.Method && strings.HasSuffix(path, "/v1/"+row.Path) {
				seen, err = row.Read(query, body)
				require.NoError(t, err)
			}
		}
		_, _ = io.WriteString(w, `{}`)
	}))
	t.Cleanup(server.Close)
	token := func(context.Context) (string, error) { return "token-marker", nil }
	for _, c := range []struct {
		credential         opsapi.Credential
		function, expected string
	}{
		{key, "/api/ops/v1/", "key-marker"},
		{opsapi.Credential{Token: token}, "/api/ui/api/v1/", "Bearer token-marker"},
	} {
		caller, err := opsapi.Remote(server.URL, c.credential, nil)
		require.NoError(t, err)
		items := ops.ItemQuery{
			Run: "r/1 ä&?", Outcomes: []invoice.Outcome{invoice.OutcomeFailed, invoice.OutcomeRetryScheduled}, Limit: 7,
			Page: "2025-12-17 10:30:00-06:00 %+",
		}
		_, err = opsapi.Do(t.Context(), caller, opsapi.RunItems, items)
		require.NoError(t, err)
		require.Equal(t, []any{items, c.function + "runs/items", c.expected}, []any{seen, path, credential})
		audits := ops.AuditQuery{All: true}
		_, err = opsapi.Do(t.Context(), caller, opsapi.AuditList, audits)
		require.NoError(t, err)
		require.Equal(t, audits, seen)
		start := ops.StartRequest{
			Kind: run.Replay, Since: at, IDs: []string{"a,b"}, OverwriteEdits: []int64{1 << 60}, Why: "w\x01",
		}
		_, err = opsapi.Do(t.Context(), caller, opsapi.RunStart, start)
		require.NoError(t, err)
		got, ok := seen.(ops.StartRequest)
		require.True(t, ok && got.Since.Equal(at))
		got.Since = at
		require.Equal(t, start, got)
	}
	denied := opsapi.Credential{Token: func(context.Context) (string, error) {
		return "", errors.New("sign in with az login")
	}}
	caller, err := opsapi.Remote(server.URL, denied, nil)
	require.NoError(t, err)
	_, err = opsapi.Do(t.Context(), caller, opsapi.StatusGet, ops.StatusQuery{})
	var refused *opsapi.DeniedError
	require.ErrorAs(t, err, &refused, "no token: a retry does not help")
}
