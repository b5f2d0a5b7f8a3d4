package e2e_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"sqlwriter/internal/invoice"
	"sqlwriter/internal/ops"
	"sqlwriter/test/emulators/azurite"
	"sqlwriter/test/sample"
)

// The tests of this file plant a fault in documents, or what an operator does, and look with the real sqlwriterctl. The
// timer ticks when they say so.

// yearly is a schedule that does not tick while a test runs.
const yearly = "0 0 0 1 1 *"

// timerStorage is the setting of a storage without a blob, where the host keeps the status of timers.
func timerStorage(t *testing.T) map[string]string {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPut {
			w.WriteHeader(http.StatusCreated)
			return
		}
		w.Header().Set("x-ms-error-code", "BlobNotFound")
		w.WriteHeader(http.StatusNotFound)
	}))
	t.Cleanup(server.Close)
	return map[string]string{
		"AzureWebJobsStorage": "DefaultEndpointsProtocol=http;AccountName=test;AccountKey=dGVzdA==;BlobEndpoint=" +
			server.URL + "/test;",
	}
}

// tick posts a tick of the recovery timer to the host, as an operator can, and waits for its end.
func (s *stack) tick() {
	s.t.Helper()
	s.tickOf("RecoverRetries", "tick_done")
}

// tickOf posts a tick of a timer to the host, and waits until the event of its end is logged once more.
func (s *stack) tickOf(function, event string) {
	s.t.Helper()
	done := func(l logLine) bool { return l.Event == event }
	before := len(s.handler.log(done))
	request, err := http.NewRequestWithContext(s.t.Context(), http.MethodPost,
		"http://"+s.host.Address()+"/admin/functions/"+function,
		strings.NewReader(`{"input":""}`))
	require.NoError(s.t, err)
	request.Header.Set("x-functions-key", masterKey)
	answer, err := http.DefaultClient.Do(request)
	require.NoError(s.t, err)
	require.NoError(s.t, answer.Body.Close())
	require.Equal(s.t, http.StatusAccepted, answer.StatusCode)
	require.Eventually(s.t, func() bool {
		return len(s.handler.log(done)) > before
	}, patience, 20*time.Millisecond, "the tick does not end")
}

// aResult is a result for a line; members are those of process_output that differ from a good one.
func aResult(t *testing.T, sysName string, line int, members map[string]any) (id string, doc json.RawMessage) {
	t.Helper()
	output := map[string]any{
		"manufacturer_name": "ACME", "part_number": "425", "unspsc": "39131711", "invoice_line_status": "RC-AI",
	}
	maps.Copy(output, members)
	id = fmt.Sprintf("2025-12-17 10:30:00.%06d-06:00-0001-%d", line, line)
	raw, err := json.Marshal(map[string]any{
		"id": id, "request_details": map[string]any{"sys_name": sysName},
		"invoice_details_from_rpa": map[string]any{"IVCE_DTL_UID": line},
		"process_output":           output, "sql_writer": map[string]any{"status": "pending", "retry_count": 0},
	})
	require.NoError(t, err)
	return id, raw
}

// quietStack is a stack with a good document in SQL, whose timer has counted, and for which nothing asks for attention.
func quietStack(t *testing.T, prepare func(*stack)) *stack {
	t.Helper()
	docs := sample.Generate(sample.Options{Seed: 75, Count: 5, Clean: true})
	s := newStack(t, append(sample.Lines(docs), 1)...)
	s.recover = yearly
	s.withBus(usualLock) // the timer looks into its queues
	if prepare != nil {
		prepare(s)
	}
	s.submit(jsons(docs)...)
	s.handler = s.launch("e2e", timerStorage(t))
	s.host = s.handler.Host
	s.waitUntilQuiet(len(docs))
	s.requireNothing()
	s.tick()
	s.requireNothing()
	return s
}

// requireNothing requires that nothing asks for attention.
func (s *stack) requireNothing() {
	s.t.Helper()
	out, exit := s.sqlwriterctl("status", "--check")
	require.Zero(s.t, exit, out)
}

// requireCounted requires that status of the real tool counts a group of documents with a code at the next tick, and
// gives one of them.
func (s *stack) requireCounted(status invoice.Status, kind, code string, documents int, sample string) {
	s.t.Helper()
	begin := time.Now()
	s.tick()
	out, _ := s.sqlwriterctl("status", "-o", "json")
	var is ops.Status
	require.NoError(s.t, json.Unmarshal([]byte(out), &is))
	at := slices.IndexFunc(is.Counts.Groups, func(g ops.Group) bool { return g.Code == code })
	require.GreaterOrEqual(s.t, at, 0, "%v", is.Counts.Groups)
	g := is.Counts.Groups[at]
	require.Equal(s.t, []any{status, kind, ops.Count{Documents: documents}}, []any{g.Status, g.Kind, g.Documents})
	if sample != "" {
		require.Equal(s.t, sample, g.Sample)
	}
	s.requirePageShows(g)
	s.t.Logf("PLANTED %s %s after the next tick (%s): %s documents, such as %s %s", g.Status, g.Code,
		time.Since(begin).Round(10*time.Millisecond), g.Documents, g.Sample, g.Retry)
}

func TestPlantedATextIsTooLong(t *testing.T) {
	t.Parallel()
	s := quietStack(t, nil)
	id, doc := aResult(t, "web", 1, map[string]any{"part_number": strings.Repeat("0123456789", 10) + "X"})
	s.submit(doc)
	s.waitUntilQuiet(6)
	s.requireCounted(invoice.RetryScheduled, "document", "validation.too_long", 1, id)
	s.requireNothing() // it is tried again for two hours
	why, _ := s.sqlwriterctl("document", "why", id)
	require.Contains(t, why, "part_number")
	t.Logf("PLANTED why: %s", why)
}

func TestPlantedRowsAreMissing(t *testing.T) {
	t.Parallel()
	s := quietStack(t, nil)
	planted := time.Now()
	for line := range 25 {
		_, doc := aResult(t, "web", 900_000+line, nil)
		s.submit(doc)
	}
	s.waitAlarm(planted, "mass_failure", "documents began to fail with missing_detail_row since ")
	s.waitUntilQuiet(30)
	s.requireCounted(invoice.RetryScheduled, "document", "missing_detail_row", 25, "")
}

func TestPlantedASysNameIsWrong(t *testing.T) {
	t.Parallel()
	s := quietStack(t, nil)
	id, doc := aResult(t, "WEB", 1, nil)
	planted := time.Now()
	s.submit(doc)
	s.waitAlarm(planted, "skipped",
		`^1 document names another environment than "web": it leaves them alone since .*, such as `+id)
}

func TestPlantedAPoisonMessage(t *testing.T) {
	t.Parallel()
	s := quietStack(t, func(s *stack) {
		s.blobs = azurite.Start(t).ConnectionString()
		s.addLines(2)
	})
	id, doc := spent(t, 2)
	s.submit(doc)
	s.tick() // its last try; the good documents were written since it failed
	require.Equal(t, "failed", s.state(id)["status"], "%v", s.state(id))
	s.requireCounted(invoice.Failed, "document", "validation.too_long", 1, id)
	s.waitAlarm(time.Now(), "poison", "^1 document failed for good in the last 60 minutes$")
}

func TestPlantedTheFlowIsPaused(t *testing.T) {
	t.Parallel()
	s := quietStack(t, nil)
	planted := time.Now()
	s.sqlwriterctl("flow", "pause", "--why", "index rebuild")
	s.waitAlarm(planted, "flow_paused", "^the flow is paused by .* since .*: index rebuild$")
}

// A run is cancelled while no worker has a batch of it. It stays listed until the next tick ends it.
func TestPlantedARunIsCancelled(t *testing.T) {
	t.Parallel()
	s := quietStack(t, nil)
	require.NoError(t, s.host.Stop())
	settings := off("CommitResults", "BatchManager", "BatchWorker", "RunDeadLetter", "BatchDeadLetter")
	maps.Copy(settings, timerStorage(t))
	s.handler = s.launch("operators", settings)
	s.host = s.handler.Host
	s.handler.waitReady()
	_, doc := aResult(t, "web", 1, nil)
	s.submit(doc)
	id := s.startRun(`{"kind":"drain","why":"to be cancelled"}`)
	planted := time.Now()
	s.sqlwriterctl("run", "cancel", id, "--why", "a mistake")
	out, _ := s.sqlwriterctl("status", "-o", "json")
	var is ops.Status
	require.NoError(t, json.Unmarshal([]byte(out), &is))
	require.Equal(t, []string{id, ops.RunCancelled, "cancelled: the recovery timer ends it at its next tick"},
		[]string{is.Runs[0].ID, is.Runs[0].State, is.Runs[0].Says})
	t.Logf("PLANTED run cancelled after %s: %s", time.Since(planted).Round(10*time.Millisecond), is.Runs[0].Says)
	s.requirePageRun(id, is.Runs[0].Says)
	s.requireNothing()
	s.tick()
	require.Empty(t, s.status().Runs)
	out, exit := s.sqlwriterctl("run", "show", id)
	require.Equal(t, 1, exit, "it did not complete")
	t.Logf("PLANTED run show: %s", out)
	require.Regexp(t, `status\s+cancelled`, out)
}
