package commit_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"sqlwriter/internal/commit"
	"sqlwriter/internal/invoice"
)

// twin is a document with the id of line 1, in a request of its own.
func twin(request string, line int64, sysName, state string) string {
	doc := strings.Replace(document(idOf1, line, "ACME", state), `"request_details":{"sys_name":"web"}`, `"request_details":{"id":"`+request+`","sys_name":"`+sysName+`"}`, 1)
	return doc
}

const idOf1 = "2025-12-17 10:01:00.000000-06:00-0001-1"

// both reads the documents with the id as another batch would.
func (w *world) both() []json.RawMessage {
	w.t.Helper()
	raws, err := w.docs.ReadMany(w.t.Context(), []string{idOf1})
	require.NoError(w.t, err)
	return raws
}

// states lists status and code of the documents with the id.
func (w *world) states() (states []string) {
	w.t.Helper()
	for _, raw := range w.both() {
		d, err := invoice.Read(raw, w.clock)
		require.NoError(w.t, err)
		states = append(states, strings.TrimSpace(string(d.State.Status)+" "+d.State.LastErrorCode))
	}
	return states
}

func TestTwinsAreNamedAndNeitherIsWrittenOnEachWayIntoABatch(t *testing.T) {
	for name, purpose := range map[string]commit.Purpose{"feed": commit.FromFeed, "timer": commit.FromTimer, "run": commit.ForRun} {
		w := newWorld(t, 1, 2, 3)
		require.NoError(t, w.docs.Put(json.RawMessage(twin("R1", 1, "web", ""))))
		require.NoError(t, w.docs.Put(json.RawMessage(twin("R2", 2, "web", ""))))
		other := w.put(result(3, 3, "ACME", ""))
		report, err := w.batch(commit.Batch{Documents: append(w.both(), other...), Purpose: purpose})
		require.NoError(t, err)
		require.Equal(t, 1, report.Outcomes["applied"], "%s: the others are written: %v", name, report.Outcomes)
		require.Equal(t, []string{"retry_scheduled id_twice", "retry_scheduled id_twice"}, w.states(), name)
		for line := int64(1); line <= 2; line++ {
			_, written := w.sink.Entry(line)
			require.False(t, written, name)
		}
	}
}

func TestATwinOfAnotherEnvironmentDoesNotCount(t *testing.T) {
	w := newWorld(t, 1, 2)
	require.NoError(t, w.docs.Put(json.RawMessage(twin("R1", 1, "web", ""))))
	require.NoError(t, w.docs.Put(json.RawMessage(twin("R2", 2, "dev", ""))))
	report := w.run(w.both()...)
	require.Equal(t, 1, report.Outcomes["applied"], "%v", report.Outcomes)
	require.ElementsMatch(t, []string{"committed", "pending"}, w.states())
}

func TestATwinThatTheBatchDoesNotTakeDoesNotCount(t *testing.T) {
	w := newWorld(t, 1, 2)
	require.NoError(t, w.docs.Put(json.RawMessage(twin("R1", 1, "web", `{"status":"committed","outcome":"unchanged"}`))))
	require.NoError(t, w.docs.Put(json.RawMessage(twin("R2", 2, "web", ""))))
	report := w.run(w.both()...)
	require.Equal(t, map[string]int{"applied": 1, "skipped": 1}, report.Outcomes)
	require.Equal(t, []string{"committed", "committed"}, w.states())
}

// A document that is read again is found by what it is, and not by its id.
func TestATwinIsNotReadInPlaceOfADocument(t *testing.T) {
	w := newWorld(t, 1, 2)
	require.NoError(t, w.docs.Put(json.RawMessage(twin("R1", 1, "web", ""))))
	first := w.both()
	require.NoError(t, w.docs.Put(json.RawMessage(twin("R2", 2, "web", ""))))
	report, err := w.batch(commit.Batch{Documents: first, RetryCount: 1}) // old snapshots are read again
	require.NoError(t, err)
	require.Equal(t, map[string]int{"applied": 1}, report.Outcomes)
	require.Equal(t, []string{"committed", "pending"}, w.states())
	_, written := w.sink.Entry(2)
	require.False(t, written)
}

// Evidence is found by the id, so it could not say of which document it is.
func TestATwinIsNeverGivenUpAndGoesOnWhenItIsAlone(t *testing.T) {
	w := newWorld(t, 1, 2)
	require.NoError(t, w.docs.Put(json.RawMessage(twin("R1", 1, "web", ""))))
	require.NoError(t, w.docs.Put(json.RawMessage(twin("R2", 2, "web", ""))))
	for range 12 {
		_, err := w.batch(commit.Batch{Documents: w.both(), Purpose: commit.FromTimer})
		require.NoError(t, err)
		w.clock = w.clock.Add(2 * time.Hour)
		w.othersApply()
	}
	require.Equal(t, []string{"retry_scheduled id_twice", "retry_scheduled id_twice"}, w.states())
	require.Empty(t, w.evidence.Files())
	require.Contains(t, w.log.String(), `"event":"poison_waits"`)
	w.docs.DeleteUnder(idOf1, `"R2"`)
	_, err := w.batch(commit.Batch{Documents: w.both(), Purpose: commit.FromTimer})
	require.NoError(t, err)
	require.Equal(t, []string{"committed"}, w.states())
}

func TestTwoSnapshotsOfOneDocumentAreNoTwins(t *testing.T) {
	w := newWorld(t, 1)
	old := w.put(twin("R1", 1, "web", ""))
	w.clock = w.clock.Add(time.Second)
	now := w.put(strings.Replace(twin("R1", 1, "web", ""), "ACME", "NEW", 1))
	report := w.run(old[0], now[0])
	require.Equal(t, map[string]int{"applied": 1, "skipped": 1}, report.Outcomes)
	require.Equal(t, "NEW", w.value(1, invoice.Detail, "CLN_MFR_AI_NM"))
}
