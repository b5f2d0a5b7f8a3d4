package main

import (
	"cmp"
	"context"
	"encoding/json"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/rs/zerolog"
	"github.com/stretchr/testify/require"

	"sqlwriter/handlers"
	server "sqlwriter/internal/app"
	"sqlwriter/internal/ops"
)

// host is a Functions host for the command line: it requires the key and forwards the request (docs/facts.md F12).
func host(t *testing.T, o *ops.Ops, key string) *httptest.Server {
	t.Helper()
	return hostOf(t, handlers.Ops(func(context.Context) (*ops.Ops, error) { return o, nil }), key)
}

// requestWithin is the deadline of a request: run.Executor begins nothing new in its last 45 s.
const requestWithin = 55 * time.Second

func hostOf(t *testing.T, f handlers.Mounted, key string) *httptest.Server {
	t.Helper()
	host := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		rest, ok := strings.CutPrefix(r.URL.Path, "/api/ops/")
		switch {
		case !ok:
			w.WriteHeader(http.StatusNotFound)
			return
		case r.Header.Get("x-functions-key") != key:
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		query := map[string]string{}
		for name := range r.URL.Query() {
			query[name] = r.URL.Query().Get(name)
		}
		request := map[string]any{
			"Url": "http://x" + r.URL.RequestURI(), "Method": r.Method, "Query": query, "Headers": r.Header,
			"Params": map[string]string{"path": rest},
			"Identities": json.RawMessage(`[{"AuthenticationType":"WebJobsAuthLevel","IsAuthenticated":true,
				"Claims":[{"Type":"http://schemas.microsoft.com/2017/07/functions/claims/keyid","Value":"operator"}]}]`),
		}
		if r.ContentLength > 0 {
			body, err := io.ReadAll(r.Body)
			require.NoError(t, err)
			request["Body"] = string(body)
		}
		object, err := json.Marshal(request)
		require.NoError(t, err)
		ctx, cancel := context.WithTimeout(r.Context(), requestWithin)
		defer cancel()
		reply, err := f.Run(ctx, handlers.Invocation{Object: object})
		require.NoError(t, err)
		w.WriteHeader(reply.HTTP.Status)
		require.NoError(t, json.NewEncoder(w).Encode(reply.HTTP.Body))
	}))
	t.Cleanup(host.Close)
	return host
}

// served is the real app in this process, with the settings that it was started with.
type served struct {
	app      *server.App
	settings map[string]string
}

// run runs a command beside a running app. The app is started anew when its settings have changed.
func (r *real) run(t *testing.T, args ...string) int {
	t.Helper()
	r.serve(t)
	return r.bench.run(t, args...)
}

func (r *real) serve(t *testing.T) {
	t.Helper()
	settings := maps.Clone(r.env)
	maps.DeleteFunc(settings, func(name, _ string) bool { return strings.HasPrefix(name, "SQLWRITER_") })
	if r.served != nil && maps.Equal(settings, r.served.settings) {
		return
	}
	r.stop()
	given, sysName := maps.Clone(settings), cmp.Or(settings["SYS_NAME"], "web")
	for name, value := range map[string]string{
		"COSMOS_CONTAINER": "AI_PROCESS_LOGS", "LEASE_CONTAINER": "leases", "LEASE_PREFIX": sysName + "-",
		"AzureWebJobsStorage": "UseDevelopmentStorage=true",
		"RUNS_QUEUE":          "sqlwriter-" + sysName + "-runs", "BATCHES_QUEUE": "sqlwriter-" + sysName + "-batches",
		// no server listens there
		"SERVICEBUS_CONNECTION": "Endpoint=sb://127.0.0.1:9;SharedAccessKeyName=k;SharedAccessKey=a;UseDevelopmentEmulator=true;",
	} {
		if given[name] == "" {
			given[name] = value
		}
	}
	a := server.New(func(name string) (string, bool) { v, ok := given[name]; return v, ok }, zerolog.Nop())
	a.Start(context.WithoutCancel(t.Context()))
	r.served = &served{a, settings}
	for _, f := range a.Functions() {
		if f.Name == "Ops" {
			r.env["SQLWRITER_APP"], r.env["SQLWRITER_KEY"] = hostOf(t, f, "key-marker").URL, "key-marker"
		}
	}
}

// stop ends the app.
func (r *real) stop() {
	if r.served != nil {
		r.served.app.Close()
		r.served = nil
	}
}
