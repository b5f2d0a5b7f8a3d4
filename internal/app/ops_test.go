package app

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// ask posts a request to the Ops function as the host does, and returns the status and body of its reply.
func (p *process) ask(method, path, body string) (status string, reply map[string]any) {
	p.t.Helper()
	path, query, _ := strings.Cut(path, "?")
	values := map[string]string{}
	if name, value, found := strings.Cut(query, "="); found {
		values[name] = value
	}
	request := map[string]any{
		"Url": "http://localhost/api/ops/v1/" + path, "Method": method, "Query": values,
		"Params":  map[string]string{"path": "v1/" + path},
		"Headers": map[string][]string{"Content-Type": {"application/json"}},
		"Identities": json.RawMessage(`[{"AuthenticationType":"WebJobsAuthLevel","IsAuthenticated":true,
			"Claims":[{"Type":"http://schemas.microsoft.com/2017/07/functions/claims/keyid","Value":"` + operatorMarker + `"}]}]`),
	}
	if body != "" {
		request["Body"] = body
	}
	envelope, err := json.Marshal(map[string]any{"Data": map[string]any{"req": request}, "Metadata": map[string]any{}})
	require.NoError(p.t, err)
	code, text := p.send(http.MethodPost, "/Ops", envelope)
	require.Equal(p.t, http.StatusOK, code, text)
	var wire struct {
		Outputs struct {
			Res struct {
				StatusCode string `json:"statusCode"`
				Body       string `json:"body"`
			} `json:"res"`
		}
	}
	require.NoError(p.t, json.Unmarshal([]byte(text), &wire))
	require.NoError(p.t, json.Unmarshal([]byte(wire.Outputs.Res.Body), &reply))
	return wire.Outputs.Res.StatusCode, reply
}

// An operator pauses, sees documents wait without a spent retry, and resumes. The audit log contains both actions.
func TestAnOperatorPausesAndResumes(t *testing.T) {
	s := newStack(t)
	p := start(t, s.settings)
	p.waitReady()
	status, reply := p.ask(http.MethodPost, "flow/pause", `{"why":"maintenance"}`)
	require.Equal(t, "200", status, reply)
	require.Equal(t, true, reply["audited"])

	batch := envelope(t, s.submit(1, 4, ""))
	code, _ := p.send(http.MethodPost, "/CommitResults", batch)
	require.Equal(t, http.StatusServiceUnavailable, code)
	require.Equal(t, map[string]int{`"pending"`: 3}, s.statuses(), "nothing was told to any document")
	_, health := p.health()
	require.Equal(t, "paused", health["flow"].(map[string]any)["state"])
	status, reply = p.ask(http.MethodGet, "status", "")
	require.Equal(t, "200", status)
	require.Contains(t, reply, "flow")

	status, reply = p.ask(http.MethodPost, "flow/resume", `{}`)
	require.Equal(t, "400", status, reply)
	status, reply = p.ask(http.MethodPost, "flow/resume", `{"why":"done"}`)
	require.Equal(t, "200", status, reply)
	code, _ = p.send(http.MethodPost, "/CommitResults", batch)
	require.Equal(t, http.StatusOK, code)
	require.Equal(t, map[string]int{`"committed"`: 3}, s.statuses())
	status, reply = p.ask(http.MethodGet, "audits", "")
	require.Equal(t, "200", status)
	require.Len(t, reply["audits"], 2)
}

// The timer counts while SQL has never answered, so the app is not ready. The status names what fails.
func TestTheTimerCountsBeforeTheAppIsReady(t *testing.T) {
	s := newStack(t)
	s.submit(1, 4, "")
	s.settings["SQL_CONNECTION"] = "sqlserver://u:p@127.0.0.1:9?database=d" // no server listens there
	p := start(t, s.settings)
	go func() {
		_, _ = p.post("/RecoverRetries", []byte(`{"Data":{"timer":{"IsPastDue":false}},"Metadata":{}}`))
	}() // it waits for readiness
	require.Eventually(t, func() bool {
		_, reply := p.ask(http.MethodGet, "status", "")
		counts, there := reply["counts"].(map[string]any)
		return there && counts["depth"].(map[string]any)["pending"].(map[string]any)["documents"] == float64(3)
	}, patience, 100*time.Millisecond)
}

// Service Bus is away, and operators' work goes on in the app: a run, a retry of documents, and a run that was left.
func TestARunGoesOnWhileServiceBusIsAway(t *testing.T) {
	s := newStack(t) // nothing listens at its Service Bus
	s.submit(1, 4, "")
	s.patchAll(
		`{"status":"failed","retry_count":5,"failed_at":"2025-12-18 09:00:00.000000-06:00","last_error":"x","last_error_kind":"document","last_error_code":"2628"}`)
	p := start(t, s.settings)
	p.waitReady()
	status, reply := p.ask(http.MethodPost, "documents/retry",
		`{"ids":["2025-12-17 10:30:15.000001-06:00"],"why":"column widened"}`)
	require.Equal(t, "200", status, reply)
	require.Equal(t, map[string]int{`"committed"`: 1, `"failed"`: 2}, s.statuses())

	status, reply = p.ask(http.MethodPost, "flow/pause", `{"why":"index rebuild"}`)
	require.Equal(t, "200", status, reply)
	status, reply = p.ask(http.MethodPost, "runs", `{"kind":"replay","all":true,"why":"column widened"}`)
	require.Equal(t, "200", status, reply)
	require.Contains(t, reply["note"], "its message could not be sent")
	require.Contains(t, reply["note"], "the run is not over: the flow is paused")
	begun, there := reply["run"].(string)
	require.True(t, there)
	status, reply = p.ask(http.MethodPost, "flow/resume", `{"why":"it is built"}`)
	require.Equal(t, "200", status, reply)
	status, reply = p.ask(http.MethodPost, "runs/resume", `{"run":"`+begun+`","why":"Service Bus is away"}`)
	require.Equal(t, "200", status, reply)
	require.Equal(t, "completed", reply["status"])
	require.Equal(t, map[string]int{`"committed"`: 3}, s.statuses())

	s.patchAll(
		`{"status":"failed","failed_at":"2025-12-18 09:00:00.000000-06:00","last_error_kind":"document","last_error_code":"2628"}`)
	status, reply = p.ask(http.MethodPost, "runs", `{"kind":"replay","all":true,"why":"once more"}`)
	require.Equal(t, "200", status, reply)
	progress, there := reply["progress"].(map[string]any)
	require.True(t, there, reply)
	require.Equal(t, []any{"completed", 3.}, []any{progress["status"], progress["done"]})
	require.Equal(t, map[string]int{`"committed"`: 3}, s.statuses())
}
