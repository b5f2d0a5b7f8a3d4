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
	doc := strings.Replace(document(idOf1, line, "ACME", state), `"request_details":{"sys_name":"web"}`,
		`"request_details":{"id":"`+request+`","sys_name":"`+sysName+`"}`, 1)
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
		d, err := invoice.Reader{}.Read(raw, w.clock)
		require.NoError(w.t, err)
		states = append(states, strings.TrimSpace(string(d.State.Status)+" "+d.State.LastErrorCode))
	}
	return states
}

func TestTwinsAreNamedAndNeitherIsWrittenOnEachWayIntoABatch(t *testing.T) {
	for name, b := range map[string]commit.Delivery{
		"feed": {Purpose: commit.FromFeed}, "timer": {Purpose: commit.FromTimer}, "run": {Purpose: commit.ForRun},
		"repeated": {RetryCount: 1}, "old": {Received: start().Add(-time.Minute)},
		"old, timer": {Purpose: commit.FromTimer, Received: start().Add(-time.Minute)},
	} {
		w := newWorld(t, 1, 2, 3)
		require.NoError(t, w.docs.Put(json.RawMessage(twin("R1", 1, "web", ""))))
		require.NoError(t, w.docs.Put(json.RawMessage(twin("R2", 2, "web", ""))))
		other := w.put(result(3, 3, "ACME", ""))
		b.Documents = append(w.both(), other...)
		report, err := w.batch(b)
		require.NoError(t, err)
		require.Equal(t, 1, report.Outcomes["applied"], "%s: the others are written: %v", name, report.Outcomes)
		require.Equal(t, []string{"retry_scheduled id_twice", "retry_scheduled id_twice"}, w.states(), name)
		for line := int64(1); line <= 2; line++ {
			_, written := w.sink.Entry(line)
			require.False(t, written, name)
		}
	}
}

func TestATwinThatIsTouchedBeforeItsRecordIsNotWritten(t *testing.T) {
	w := newWorld(t, 1, 2)
	require.NoError(t, w.docs.Put(json.RawMessage(twin("R1", 1, "web", ""))))
	require.NoError(t, w.docs.Put(json.RawMessage(twin("R2", 2, "web", ""))))
	w.faulty.onRecord = func(n int) error {
		if n == 1 {
			return w.docs.Put(json.RawMessage(twin("R1", 1, "web", "")))
		}
		return nil
	}
	report, err := w.batch(commit.Delivery{Documents: w.both()})
	require.NoError(t, err)
	require.Equal(t, map[invoice.Outcome]int{"retry_scheduled": 2}, report.Outcomes)
	_, written := w.sink.Entry(1)
	require.False(t, written)
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
	require.NoError(t,
		w.docs.Put(json.RawMessage(twin("R1", 1, "web", `{"status":"committed","outcome":"unchanged"}`))))
	require.NoError(t, w.docs.Put(json.RawMessage(twin("R2", 2, "web", ""))))
	report := w.run(w.both()...)
	require.Equal(t, map[invoice.Outcome]int{"applied": 1, "skipped": 1}, report.Outcomes)
	require.Equal(t, []string{"committed", "committed"}, w.states())
}

// A document that is read again is found by what it is, and not by its id.
func TestATwinIsNotReadInPlaceOfADocument(t *testing.T) {
	w := newWorld(t, 1, 2)
	require.NoError(t, w.docs.Put(json.RawMessage(twin("R1", 1, "web", ""))))
	first := w.both()
	require.NoError(t, w.docs.Put(json.RawMessage(twin("R2", 2, "web", ""))))
	report, err := w.batch(commit.Delivery{Documents: first, RetryCount: 1}) // old snapshots are read again
	require.NoError(t, err)
	require.Equal(t, map[invoice.Outcome]int{"applied": 1}, report.Outcomes)
	require.Equal(t, []string{"committed", "pending"}, w.states())
	_, written := w.sink.Entry(2)
	require.False(t, written)
}

// Without a row in SQL it fails for good, whatever has its id in another environment.
func TestATwinOfAnotherEnvironmentKeepsNoDocumentFromItsEnd(t *testing.T) {
	for _, own := range []string{"R1", "R3"} { // the container gives the other one second, or first
		w := newWorld(t)
		require.NoError(t, w.docs.Put(json.RawMessage(twin(own, 1, "web", spent()))))
		require.NoError(t, w.docs.Put(json.RawMessage(twin("R2", 2, "dev", `{"status":"committed"}`))))
		w.othersApply()
		_, err := w.batch(commit.Delivery{Documents: w.both(), Purpose: commit.FromTimer})
		require.NoError(t, err)
		require.ElementsMatch(t, []string{"committed", "failed missing_detail_row"}, w.states())
		require.Contains(t,
			string(
				w.evidence.Files()["failed/1/"+strings.NewReplacer(" ", "%20", ":", "%3A").Replace(idOf1)+
					"/20251218T140000.000000Z-"+w.hashOf1(t)+"/original.json"]), own)
	}
}

// hashOf1 is the content hash of the document of line 1.
func (w *world) hashOf1(t *testing.T) string {
	t.Helper()
	d, err := invoice.Reader{}.Read([]byte(twin("R1", 1, "web", "")), w.clock)
	require.NoError(t, err)
	return d.Hash
}

// A mark could not say of which document it is.
func TestATwinIsNeverGivenUpAndGoesOnWhenItIsAlone(t *testing.T) {
	w := newWorld(t, 1, 2)
	require.NoError(t, w.docs.Put(json.RawMessage(twin("R1", 1, "web", ""))))
	require.NoError(t, w.docs.Put(json.RawMessage(twin("R2", 2, "web", ""))))
	for range 12 {
		_, err := w.batch(commit.Delivery{Documents: w.both(), Purpose: commit.FromTimer})
		require.NoError(t, err)
		w.clock = w.clock.Add(2 * time.Hour)
		w.othersApply()
	}
	require.Equal(t, []string{"retry_scheduled id_twice", "retry_scheduled id_twice"}, w.states())
	require.Empty(t, w.evidence.Files())
	require.Contains(t, w.log.String(), `"event":"poison_waits"`)
	w.docs.DeleteUnder(idOf1, `"R2"`)
	_, err := w.batch(commit.Delivery{Documents: w.both(), Purpose: commit.FromTimer})
	require.NoError(t, err)
	require.Equal(t, []string{"committed"}, w.states())
}

func TestTwoSnapshotsOfOneDocumentAreNoTwins(t *testing.T) {
	w := newWorld(t, 1)
	old := w.put(twin("R1", 1, "web", ""))
	w.clock = w.clock.Add(time.Second)
	now := w.put(strings.Replace(twin("R1", 1, "web", ""), "ACME", "NEW", 1))
	report := w.run(old[0], now[0])
	require.Equal(t, map[invoice.Outcome]int{"applied": 1, "skipped": 1}, report.Outcomes)
	require.Equal(t, "NEW", w.value(1, invoice.Detail, "CLN_MFR_AI_NM"))
}
