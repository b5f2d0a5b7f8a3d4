package e2e_test

import (
	"encoding/json"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// functionKey opens the host's functions of authLevel function. It is an operator's.
const functionKey = "function-key-marker"

// masterKey opens the host's admin paths, too.
const masterKey = "master-key-marker"

// readerKey is a key whose name does not begin with operator.
const readerKey = "reader-key-marker"

// ops calls the operators' API as a laptop does, and answers status and body.
func (s *stack) ops(method, path, body, key string) (int, map[string]any) {
	s.t.Helper()
	request, err := http.NewRequestWithContext(s.t.Context(), method, "http://"+s.host.Address()+"/api/ops/v1/"+path,
		strings.NewReader(body))
	require.NoError(s.t, err)
	request.Header.Set("x-functions-key", key)
	if body != "" {
		request.Header.Set("Content-Type", "application/json")
	}
	response, err := http.DefaultClient.Do(request)
	require.NoError(s.t, err)
	defer func() { require.NoError(s.t, response.Body.Close()) }()
	text, err := io.ReadAll(response.Body)
	require.NoError(s.t, err)
	var answer map[string]any
	if len(text) > 0 {
		require.NoError(s.t, json.Unmarshal(text, &answer), "%s", text)
	}
	return response.StatusCode, answer
}

// What operators do works through the host and the real binary: route, key, method, body, answer.
func TestOperatorsWorkOverTheHost(t *testing.T) {
	s := newStack(t, 1421549)
	const id = "2025-12-17 10:30:00.000000-06:00-0001-1421549"
	s.submit(
		json.RawMessage(`{"id":"` + id +
			`","request_details":{"sys_name":"web"},"invoice_details_from_rpa":{"IVCE_DTL_UID":1421549},
		"process_output":{"manufacturer_name":"M","part_number":"425","unspsc":"39131711","invoice_line_status":"RC-AI"},
		"sql_writer":{"status":"failed","retry_count":5,"failed_at":"2025-12-17 12:00:00.000000-06:00","last_error_kind":"document","last_error_code":"2628"}}`))
	s.recover = "* * * * * *"
	s.startHost()
	s.handler.waitReady() // the port is open before the dependencies are

	status, _ := s.ops(http.MethodGet, "status", "", "")
	require.Equal(t, http.StatusUnauthorized, status)
	var answer map[string]any
	require.Eventually(t, func() bool { // the timer has counted
		status, answer = s.ops(http.MethodGet, "status", "", functionKey)
		return status == http.StatusOK && answer["counts"] != nil
	}, patience, 50*time.Millisecond)
	require.Equal(t, "/request_details/id", answer["partition_key"])
	counts := answer["counts"].(map[string]any)
	require.Equal(t, map[string]any{"documents": 1.0}, counts["depth"].(map[string]any)["failed"])
	status, answer = s.ops(http.MethodGet, "documents/why?id="+url.QueryEscape(id), "", functionKey)
	require.Equal(t, http.StatusOK, status, "%v", answer)
	require.Equal(t, "failed 2025-12-17T12:00:00-06:00 after 5 of 5 retries: document 2628", answer["summary"])

	status, answer = s.ops(http.MethodPost, "flow/pause", `{"why":"index rebuild"}`, functionKey)
	require.Equal(t, http.StatusOK, status, "%v", answer)
	require.Equal(t, true, answer["audited"])
	status, answer = s.ops(http.MethodPost, "flow/resume", `{"why":"it is built"}`, functionKey)
	require.Equal(t, http.StatusOK, status, "%v", answer)
	status, answer = s.ops(http.MethodPost, "documents/retry", `{"status":"failed","why":"mended"}`, functionKey)
	require.Equal(t, http.StatusOK, status, "%v", answer)
	progress := answer["progress"].(map[string]any)
	require.Equal(t, []any{"completed", 1.0}, []any{progress["status"], progress["done"]})
	require.Equal(t, "committed", s.state(id)["status"])
	// there is no Service Bus
	status, answer = s.ops(http.MethodPost, "runs", `{"kind":"reapply","all":true,"why":"once more"}`, functionKey)
	require.Equal(t, http.StatusOK, status, "%v", answer)
	require.Contains(t, answer["note"], "its message could not be sent")
	require.Equal(t, []any{"completed", 1.0},
		[]any{answer["progress"].(map[string]any)["status"], answer["progress"].(map[string]any)["done"]})

	status, answer = s.ops(http.MethodPost, "runs", `{"al":true}`, functionKey)
	require.Equal(t, http.StatusBadRequest, status, "%v", answer)
	status, answer = s.ops(http.MethodGet, "documents/why?id=nobody", "", functionKey)
	require.Equal(t, http.StatusNotFound, status, "%v", answer)
	status, answer = s.ops(http.MethodGet, "runs", "", functionKey)
	require.Equal(t, http.StatusOK, status)
	require.Len(t, answer["runs"], 2)
	status, answer = s.ops(http.MethodGet, "audits", "", functionKey)
	require.Equal(t, http.StatusOK, status)
	actions := map[string]bool{} // the timer may write a transition of the flow a second time
	for _, a := range answer["audits"].([]any) {
		actions[a.(map[string]any)["action"].(string)] = true
	}
	delete(actions, "COMPARE_START") // and begins a night in this or in the next tick
	require.Equal(t, map[string]bool{"FLOW_PAUSED": true, "FLOW_RESUMED": true, "RUN_START": true}, actions)
}
