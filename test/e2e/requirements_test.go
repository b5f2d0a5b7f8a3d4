package e2e_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"
	"github.com/stretchr/testify/require"

	"sqlwriter/handlers"
	"sqlwriter/internal/invoice"
	"sqlwriter/test/emulators/azurite"
	away "sqlwriter/test/outage"
)

// firstExample is the id of the document in the requirements' examples 1, 2 and 4, and example its text. The container
// has the requirements' partition key, request_details.id.
const firstExample = "2025-12-17 10:30:00.000000-06:00-0001-1421549"

func example(id string, duplicates ...int) json.RawMessage {
	request := id[:strings.LastIndexByte(id, '-')]
	more, _ := json.Marshal(append([]int{}, duplicates...))
	return json.RawMessage(
		fmt.Sprintf(
			`{"id":%q,"request_details":{"id":%q,"sys_name":"web"},"invoice_details_from_rpa":{"IVCE_DTL_UID":1421549},
		"process_output":{"manufacturer_name":"THOMAS & BETTS","part_number":"425","unspsc":"39131711","invoice_line_status":"RC-AI"},
		"post-processing":{"duplicate_detail_uids":%s},"sql_writer":{"status":"pending","retry_count":0}}`, id, request, more))
}

// stamped is a time as the requirements write it.
const stamped = `^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d{6}-0[56]:00$`

// The five examples of the requirements (000, "Examples"), each from its document to its final document, through the
// host, on the requirements' partition key. What the product does otherwise on purpose is said where it is asserted.
func TestTheFiveExamplesOfTheRequirements(t *testing.T) {
	t.Parallel() // the fourth waits for more than a minute
	for _, e := range []struct {
		name string
		run  func(t *testing.T)
	}{
		{"1 successful processing", exampleSuccess},
		{"2 transient error with retry", exampleRetry},
		{"3 circuit breaker opens", exampleBreaker},
		{"4 poison message", examplePoison},
		{"5 duplicate invoice details", exampleDuplicates},
	} {
		t.Run(e.name, func(t *testing.T) { t.Parallel(); e.run(t) })
	}
}

// becomes waits for a status, and gives sql_writer.
func (s *stack) becomes(id string, status invoice.Status) map[string]any {
	s.t.Helper()
	var state map[string]any
	require.Eventually(s.t, func() bool {
		state = s.state(id)
		return state["status"] == string(status)
	}, s.patience, 50*time.Millisecond, "%v", state)
	return state
}

// requireCommitted requires the final document of a success.
func (s *stack) requireCommitted(id string, retries int) {
	s.t.Helper()
	state := maps.Clone(s.becomes(id, invoice.Committed))
	require.Regexp(s.t, stamped, state["committed_at"])
	delete(state, "committed_at")
	delete(state, "attempts") // the last ten tries stay
	require.Equal(s.t,
		map[string]any{"status": "committed", "outcome": "applied", "retry_count": float64(retries)}, state)
}

func exampleSuccess(t *testing.T) {
	s := newStack(t, 1421549)
	s.startHost()
	s.submit(example(firstExample))
	s.requireCommitted(firstExample, 0)
	require.Equal(t, "1421549|THOMAS & BETTS|425|39131711|RC-AI|", s.row(1421549))
}

// The cause is the document's own, as a missing row is. A connection that times out costs no retry (R31): example 3.
func exampleRetry(t *testing.T) {
	s := newStack(t)
	s.recover = "* * * * * *"
	s.startHost()
	before := time.Now()
	s.submit(example(firstExample))
	state := s.becomes(firstExample, invoice.RetryScheduled)
	require.Equal(t, 1.0, state["retry_count"])
	require.NotEmpty(t, state["last_error"])
	require.Regexp(t, stamped, state["last_error_at"])
	wait := time.Unix(int64(state["retry_after"].(float64)), 0).Sub(before)
	require.GreaterOrEqual(t, wait, 120*time.Second)
	require.LessOrEqual(t, wait, 144*time.Second+patience, "with up to a fifth more")
	s.addLines(1421549)
	s.letPass(firstExample, time.Hour)
	s.requireCommitted(firstExample, 1)
	require.Equal(t, "1421549|THOMAS & BETTS|425|39131711|RC-AI|", s.row(1421549))
}

// An outage is nobody's failure: the documents stay as they are, where the requirements schedule five for a retry
// (R31).
func exampleBreaker(t *testing.T) {
	s := newStack(t, 1421549, 1, 2, 3, 4, 5, 6)
	s.recover, s.patience = "* * * * * *", 3*patience
	s.startHost()
	s.submit(example(firstExample))
	s.requireCommitted(firstExample, 0)
	off := away.NewFile(filepath.Join(s.dir, "sqlwriter.db"), s.store.Writer())
	require.NoError(t, off.Off(t.Context()))
	var ids []string
	for line := 1; line <= 6; line++ {
		id, doc := aResult(t, "web", line, nil)
		ids = append(ids, id)
		s.submit(doc)
	}
	report := s.handler.waitHealth("the flow is stopped", func(r handlers.HealthReport) bool {
		return r.Flow.State == "stopped"
	})
	require.Equal(t, "infrastructure", report.Flow.Kind)
	next := report.Flow.NextProbe.Sub(report.Flow.Since)
	require.True(t, next >= 60*time.Second && next <= 75*time.Second,
		"no write is tried for 60 seconds, with jitter: %s", next)
	for _, id := range ids {
		require.Equal(t, map[string]any{"status": "pending", "retry_count": 0.0}, s.state(id))
	}
	require.NoError(t, off.On(t.Context()))
	for _, id := range ids {
		s.requireCommitted(id, 0)
	}
	s.handler.waitHealth("the flow runs", func(r handlers.HealthReport) bool { return r.Flow.State != "stopped" })
}

func examplePoison(t *testing.T) {
	blobs := azurite.Start(t)
	s := newStack(t, 1421549, 1, 2, 3, 4, 5, 6, 7, 8)
	s.blobs, s.recover = blobs.ConnectionString(), "* * * * * *"
	s.exec(s.store.Writer(),
		`CREATE TRIGGER refuses BEFORE UPDATE OF CLN_MFR_AI_NM ON IVCE_DTL WHEN NEW.CLN_MFR_AI_NM = 'THOMAS & BETTS' BEGIN SELECT RAISE(ABORT, 'Data validation error'); END`)
	s.startHost()
	s.submit(example(firstExample))
	for attempt := 1; attempt <= 8; attempt++ {
		require.Eventually(t, func() bool {
			state := s.state(firstExample)
			tries, _ := state["attempts"].([]any)
			return state["status"] == string(invoice.Failed) || len(tries) >= attempt
		}, patience, 20*time.Millisecond, "attempt %d: %v", attempt, s.state(firstExample))
		if s.state(firstExample)["status"] == string(invoice.Failed) {
			break
		}
		s.letPass(firstExample, 2*time.Hour)
		// another document is written after the failure: so the cause is this one
		id, other := aResult(t, "web", attempt, nil)
		s.submit(other)
		s.requireCommitted(id, 0)
	}
	state := s.becomes(firstExample, invoice.Failed)
	require.Equal(t, 5.0, state["retry_count"])
	require.Regexp(t, "^SQL Writer: Failed to process document after 5 retries: ", state["error"])
	require.Regexp(t, stamped, state["failed_at"])
	require.Equal(t, 1,
		s.count("SELECT COUNT(*) FROM IVCE_DTL WHERE IVCE_DTL_UID = 1421549 AND IVCE_LNE_STAT = 'AI-ERROR'"))
}

func exampleDuplicates(t *testing.T) {
	s := newStack(t, 1421549, 1421550, 1421551, 1421552)
	s.startHost()
	s.submit(example(firstExample, 1421550, 1421551, 1421552))
	s.requireCommitted(firstExample, 0)
	require.Equal(t, "1421549|THOMAS & BETTS|425|39131711|RC-AI|", s.row(1421549))
	for line := 1421550; line <= 1421552; line++ {
		require.Equal(t, fmt.Sprint(line, "|THOMAS & BETTS|425|39131711|RC-AI|1421549"), s.row(line))
	}
	require.Equal(t, 4, s.count("SELECT COUNT(*) FROM IVCE_TRKG_MSTR"))
}

// letPass makes a waiting document as old as if some time had passed: its retry is due, and its failures are that long
// ago.
func (s *stack) letPass(id string, by time.Duration) {
	s.t.Helper()
	require.Eventually(s.t, func() bool {
		var d struct {
			State map[string]any `json:"sql_writer"`
		}
		require.NoError(s.t, json.Unmarshal(s.document(id), &d))
		d.State["retry_after"] = d.State["retry_after"].(float64) - by.Seconds()
		older := func(stamp any) string {
			at, err := time.Parse("2006-01-02 15:04:05.000000-07:00", fmt.Sprint(stamp))
			require.NoError(s.t, err)
			return at.Add(-by).Format("2006-01-02 15:04:05.000000-07:00")
		}
		d.State["last_error_at"] = older(d.State["last_error_at"])
		for _, a := range d.State["attempts"].([]any) {
			attempt := a.(map[string]any)
			attempt["at"] = older(attempt["at"])
		}
		var patch azcosmos.PatchOperations
		patch.AppendSet("/sql_writer", d.State)
		return s.docs.Patch(s.t.Context(), id, patch) == nil
	}, patience, 50*time.Millisecond)
}
