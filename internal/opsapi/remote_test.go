package opsapi_test

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/require"

	"sqlwriter/internal/ops"
	"sqlwriter/internal/opsapi"
)

var key = opsapi.Credential{Key: "key-marker"}

func TestTheKeyTravelsEncryptedAndNowhereElse(t *testing.T) {
	for _, address := range []string{"http://example.com", "example.com", "ftp://example.com", "https://u:p@example.com", "https://example.com?code=x", "https://"} {
		_, err := opsapi.Remote(address, key, nil)
		require.Error(t, err, address)
		require.NotContains(t, err.Error(), "code=x")
	}
	for _, address := range []string{"https://x.azurewebsites.net", "https://x/other/", "http://localhost:7071", "http://127.0.0.1:7071/"} {
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
	_, err = opsapi.Do(t.Context(), c, opsapi.StatusGet, opsapi.None{})
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
		"down":         {503, `{"detail":"stopped since then","kind":"infrastructure","code":"breaker_open"}`, []string{"503", "stopped since then", "breaker_open"}, false, false},
		"no reason":    {502, `<html>`, []string{"502", "did not complete the request"}, true, false},
		"the host's":   {500, ``, []string{"500"}, true, false},
		"another form": {200, `[]`, []string{"this build does not understand the app's answer"}, false, false},
		"a teapot":     {418, ``, []string{"418"}, false, false},
		"no key":       {401, ``, []string{"401", "the key or the token is not valid"}, false, true},
		"no role":      {403, `{"detail":"run.start requires Operator","kind":"request","code":"denied"}`, []string{"403", "requires Operator"}, false, true},
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
	_, err = opsapi.Do(t.Context(), remote, opsapi.StatusGet, opsapi.None{})
	require.ErrorContains(t, err, "the app did not answer")
}
