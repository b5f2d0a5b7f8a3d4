package commit_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"sqlwriter/internal/commit"
	"sqlwriter/internal/fault"
	"sqlwriter/internal/invoice"
)

// The first example of the requirements: the same document gets the same final fields.
func TestSeedExample1SuccessfulProcessing(t *testing.T) {
	w := newWorld(t, 1421549)
	w.clock = time.Date(2025, 12, 17, 16, 30, 15, 123456000, time.UTC)
	const id = "2025-12-17 10:30:00.000000-06:00-0001-1421549"
	report := w.run(
		w.put(`{"id":"` + id + `","request_details":{"id":"2025-12-17 10:30:00.000000-06:00-0001","sys_name":"web"},
		"invoice_details_from_rpa":{"IVCE_DTL_UID":1421549},
		"process_output":{"manufacturer_name":"THOMAS & BETTS","part_number":"425","unspsc":"39131711","invoice_line_status":"RC-AI"},
		"post-processing":{"duplicate_detail_uids":[]},"sql_writer":{"status":"pending","retry_count":0}}`)...)

	require.Equal(t, map[string]any{
		"status": "committed", "outcome": "applied", "retry_count": 0.0,
		"committed_at": "2025-12-17 10:30:15.123456-06:00",
	}, w.state(id))
	require.Equal(t, "THOMAS & BETTS", w.value(1421549, invoice.Detail, "CLN_MFR_AI_NM"))
	require.Equal(t, "425", w.value(1421549, invoice.Detail, "CLN_MFR_PRT_NUM"))
	require.Equal(t, "39131711", w.value(1421549, invoice.Tracking, "UNSPSC_CD"))
	require.Equal(t, "RC-AI", w.value(1421549, invoice.Detail, invoice.DefaultMapping().Status(invoice.Detail)))
	require.Equal(t, "NULL", w.value(1421549, invoice.Detail, "PRNT_IVCE_DTL_ID"))
	require.Equal(t, 1, report.Writes, "one write per document")
	require.Equal(t, 0, report.Reads, "no read on the happy path")
}

// The fifth example of the requirements: four lines from one document, the duplicates with their parent.
func TestSeedExample5DuplicateInvoiceDetails(t *testing.T) {
	lines := []int64{1421549, 1421550, 1421551, 1421552}
	w := newWorld(t, lines...)
	doc := result(30, 1421549, "THOMAS & BETTS", "", 1421550, 1421551, 1421552)
	report := w.run(w.put(doc)...)

	require.Equal(t, 1, report.Outcomes["applied"])
	require.Equal(t, 1, report.SQLRequests)
	for _, line := range lines {
		parent := "1421549"
		if line == 1421549 {
			parent = "NULL"
		}
		require.Equal(t, parent, w.value(line, invoice.Detail, "PRNT_IVCE_DTL_ID"))
		require.Equal(t, "THOMAS & BETTS", w.value(line, invoice.Detail, "CLN_MFR_AI_NM"))
		require.Equal(t, "THOMAS & BETTS", w.value(line, invoice.Tracking, "CLN_MFR_AI_NM"))
	}
}

func TestADocumentsOwnErrorSpendsOneRetryAndNobodyElsePays(t *testing.T) {
	w := newWorld(t, 1, 2)
	bad, good, missing := result(1, 1, tooLong(), ""), result(2, 2, "ACME", ""), result(3, 99, "ACME", "")
	report := w.run(w.put(bad, good, missing)...)

	require.Equal(t, map[invoice.Outcome]int{"applied": 1, "retry_scheduled": 2}, report.Outcomes)
	require.Equal(t, map[string]int{"document": 2}, report.Kinds)
	s := w.state(idOf(t, bad))
	require.Equal(t, "retry_scheduled", s["status"])
	require.Equal(t, 1.0, s["retry_count"])
	require.Equal(t, float64(start().Unix()+120+12), s["retry_after"], "120 s plus half of 20 %")
	require.Equal(t, "document", s["last_error_kind"])
	require.Contains(t, s["last_error"], "process_output.manufacturer_name")
	require.Contains(t, s["last_error"], idOf(t, bad))
	require.Len(t, s["attempts"], 1)
	require.Contains(t, w.state(idOf(t, missing))["last_error"], "99")
	require.Equal(t, "committed", w.state(idOf(t, good))["status"])
}

// No retry can repair it: it is poison at its second failure, after others succeeded.
func TestAnUnreadableDocumentFailsAtItsSecondTry(t *testing.T) {
	w := newWorld(t, 1)
	doc := `{"id":"x","request_details":{"sys_name":"web"},"invoice_details_from_rpa":{"IVCE_DTL_UID":"12a"},
		"process_output":{"invoice_line_status":"RC-AI"},"sql_writer":{"status":"pending","note":"keep me"}}`
	w.run(w.put(doc)...)
	require.Equal(t, []any{"retry_scheduled", 1.0, float64(start().Unix() + 132)},
		[]any{w.state("x")["status"], w.state("x")["retry_count"], w.state("x")["retry_after"]})

	w.clock = w.clock.Add(10 * time.Minute)
	require.Equal(t, map[invoice.Outcome]int{"retry_scheduled": 1}, w.retry("x").Outcomes,
		"it may be our parser: nothing else was written")
	require.Equal(t, []any{2.0, nil}, []any{w.state("x")["retry_count"], w.state("x")["postponed"]})
	require.Empty(t, w.evidence.Files())

	w.othersApply()
	w.clock = w.clock.Add(time.Hour)
	require.Equal(t, map[invoice.Outcome]int{"failed": 1}, w.retry("x").Outcomes)
	s := w.state("x")
	require.Equal(t, invoice.Stamp(w.clock, chicago(t)), s["failed_at"])
	require.Contains(t, s["error"], "IVCE_DTL_UID")
	require.Equal(t, "keep me", s["note"], "unknown members stay")
	require.Contains(t, s["final_error"], "names no main line")
	require.Equal(t, 1, w.faulty.writes, "nothing of it was sent to SQL")
}

// The patch of a retry brings it back on the feed. There it must not be tried before new documents.
func TestRetriesAreTheTimers(t *testing.T) {
	w := newWorld(t, 1)
	doc := result(1, 1, "ACME", `{"status":"retry_scheduled","retry_count":1,"retry_after":1}`)
	require.Equal(t, map[invoice.Outcome]int{"skipped": 1}, w.run(w.put(doc)...).Outcomes)
	require.Equal(t, map[invoice.Outcome]int{"applied": 1}, w.retry(idOf(t, doc)).Outcomes)
}

func TestOnlyOurOwnPendingDocumentsAreTaken(t *testing.T) {
	w := newWorld(t, 1, 2, 3, 4, 5, 6)
	others := strings.ReplaceAll(result(1, 1, "ACME", ""), `"sys_name":"web"`, `"sys_name":"kirill"`)
	docs := []string{
		others,
		result(2, 2, "ACME", `{"status":"committed","retry_count":0}`),
		result(3, 3, "ACME", `{"status":"failed","retry_count":5}`),
		result(4, 4, "ACME", `{"status":"processing","retry_count":0}`),
		result(5, 5, "ACME", `{"status":"on_hold","retry_count":0}`),
		result(7, 5, "ACME", `null`),
		result(8, 6, "ACME", `{"retry_count":0}`),
		result(6, 6, "ACME", `{"status":"PENDING"}`),
	}
	before := w.put(docs...)
	report := w.run(before...)
	require.Equal(t, map[invoice.Outcome]int{"applied": 1, "skipped": 5, "not_offered": 2}, report.Outcomes)
	require.NotContains(t, w.log.String(), idOf(t, docs[6]), "a document that was never offered is not an error")
	for i, d := range docs[:7] {
		require.JSONEq(t, string(before[i]), string(w.snapshots(idOf(t, d))[0]), "unchanged")
	}
	require.Contains(t, w.log.String(), "on_hold")

	w.clock = w.clock.Add(11 * time.Minute)
	require.Equal(t, 1, w.run(w.snapshots(idOf(t, docs[3]))...).Outcomes["applied"],
		"documents that the old writer left are taken after 10 min")
}

func TestAPersonsResetStartsTheBudgetAnew(t *testing.T) {
	w := newWorld(t)
	doc := result(1, 7, "ACME",
		`{"status":"pending","retry_count":5,"failed_at":"2025-12-17 11:45:00.000000-06:00","reprocess_count":1}`)
	w.run(w.put(doc)...)
	s := w.state(idOf(t, doc))
	require.Equal(t, 1.0, s["retry_count"])
	require.Equal(t, 2.0, s["reprocess_count"])
	require.NotContains(t, s, "failed_at")
}

// Promise G5: while SQL fails, nothing is recorded and nothing is counted.
func TestAnOutageOfSQLChangesNoDocument(t *testing.T) {
	w := newWorld(t, 1, 2)
	docs := []string{result(1, 1, "ACME", ""), result(2, 2, "ACME", "")}
	before := w.put(docs...)
	w.away(true)
	report, err := w.offer(0, before...)
	require.True(t, fault.IsDependency(err))
	require.Equal(t, map[invoice.Outcome]int{"waiting": 2}, report.Outcomes)
	require.Equal(t, 0, w.faulty.records)
	for i, d := range docs {
		require.JSONEq(t, string(before[i]), string(w.snapshots(idOf(t, d))[0]))
	}
}

// A 5xx after half of the patches neither loses nor counts anything.
func TestACutAfterHalfOfThePatchesNeitherLosesNorCountsAnything(t *testing.T) {
	w := newWorld(t, 1, 2, 3, 4)
	docs := []string{result(1, 1, "A", ""), result(2, 2, "B", ""), result(3, 3, "C", ""), result(4, 4, tooLong(), "")}
	batch := w.put(docs...)
	w.faulty.onRecord = func(n int) error {
		if n > 2 {
			return down("cosmos: patch")
		}
		return nil
	}
	report, err := w.offer(0, batch...)
	require.True(t, fault.IsDependency(err))
	require.Equal(t, map[invoice.Outcome]int{"applied": 2, "waiting": 2}, report.Outcomes)

	w.faulty.onRecord = nil
	report, err = w.offer(1, batch...) // the host offers the same snapshots
	require.NoError(t, err)
	require.Equal(t, map[invoice.Outcome]int{"skipped": 2, "unchanged": 1, "retry_scheduled": 1}, report.Outcomes)
	for i, d := range docs[:3] {
		require.Equal(t, "committed", w.state(idOf(t, d))["status"])
		require.Equal(t, 0.0, w.state(idOf(t, d))["retry_count"])
		require.Equal(t, string(rune('A'+i)), w.value(int64(i+1), invoice.Detail, "CLN_MFR_AI_NM"))
	}
	require.Equal(t, 1.0, w.state(idOf(t, docs[3]))["retry_count"], "its own error, counted once")
}

func TestALostAcknowledgementOfThePatchEndsTheSame(t *testing.T) {
	w := newWorld(t, 1)
	doc := result(1, 1, "ACME", "")
	batch := w.put(doc)
	w.faulty.afterRecord = func(n int) error {
		if n == 1 {
			return down("cosmos: patch")
		}
		return nil
	}
	_, err := w.offer(0, batch...)
	require.Error(t, err)
	report, err := w.offer(1, batch...)
	require.NoError(t, err)
	require.Equal(t, 1, report.Outcomes["skipped"], "it is committed already")
	require.Equal(t, "applied", w.state(idOf(t, doc))["outcome"])
}

// Promise G4: SQL committed, and the acknowledgement was lost. SQL answers others, so the documents are sent in parts.
func TestALostAcknowledgementOfSQLAnswersUnchanged(t *testing.T) {
	w := newWorld(t, 1, 2)
	w.faulty.afterApply = func(n int) error {
		if n == 1 {
			w.edit(1, "CLN_MFR_AI_NM", "corrected by a person")
			return down("sql: apply")
		}
		return nil
	}
	docs := []string{result(1, 1, "ACME", ""), result(2, 2, "ACME", "")}
	require.Equal(t, map[invoice.Outcome]int{"unchanged": 2}, w.run(w.put(docs...)...).Outcomes)
	require.Equal(t, "corrected by a person", w.value(1, invoice.Detail, "CLN_MFR_AI_NM"),
		"a second try overwrites no correction")
}

// Promise G3: a stale batch is offered again after its document was corrected and committed.
func TestAStaleBatchDoesNotBringOldContentBack(t *testing.T) {
	for _, later := range []time.Duration{0, time.Second} { // also within one second of _ts
		w := newWorld(t, 1)
		stale := w.put(result(1, 1, "OLD", ""))
		w.clock = w.clock.Add(later)
		doc := result(1, 1, "CORRECTED", "")
		w.run(w.put(doc)...)

		_, err := w.offer(0, stale...)
		require.NoError(t, err)
		require.Equal(t, "CORRECTED", w.value(1, invoice.Detail, "CLN_MFR_AI_NM"), "re-sent after %s", later)
		require.Equal(t, "committed", w.state(idOf(t, doc))["status"])
	}
}

func TestNewestWinsAndTheOlderOneSaysWho(t *testing.T) {
	w := newWorld(t, 1)
	older, newer := result(1, 1, "OLD", ""), result(2, 1, "NEW", "")
	batch := w.put(older, newer)
	report := w.run(batch[1], batch[0])
	require.Equal(t, map[invoice.Outcome]int{"applied": 1, "superseded": 1}, report.Outcomes)
	require.Equal(t, "NEW", w.value(1, invoice.Detail, "CLN_MFR_AI_NM"))
	require.Equal(t, "superseded", w.state(idOf(t, older))["outcome"])
	require.Equal(t, idOf(t, newer), w.state(idOf(t, older))["superseded_by"])
}

func TestAnAgedBatchIsReadAgainAndWorkedOnAsItIsNow(t *testing.T) {
	w := newWorld(t, 1, 2, 3)
	batch := w.put(result(1, 1, "OLD", ""), result(2, 2, "SAME", ""), result(3, 3, "DONE", ""))
	w.clock = w.clock.Add(2 * time.Second)
	w.put(result(1, 1, "NEW", ""), result(3, 3, "DONE", `{"status":"committed"}`))

	report, err := w.offer(1, batch...)
	require.NoError(t, err)
	require.Equal(t, map[invoice.Outcome]int{"applied": 2, "skipped": 1}, report.Outcomes)
	require.Equal(t, 1, w.faulty.reads, "one ReadMany")
	require.Equal(t, "NEW", w.value(1, invoice.Detail, "CLN_MFR_AI_NM"))
}

// The host rewrites an id that is a time from end to end. Nothing may be written under the rewritten id.
func TestAnIdThatTheHostReprintedIsNeverWritten(t *testing.T) {
	w := newWorld(t, 1)
	const real, reprinted = "2025-12-17T10:30:00.1000000Z", "2025-12-17T10:30:00.1Z"
	batch := w.put(document(real, 1, "ACME", ""))
	report := w.run(json.RawMessage(strings.Replace(string(batch[0]), real, reprinted, 1)))
	require.Equal(t, map[invoice.Outcome]int{"left": 1}, report.Outcomes)
	require.Equal(t, 0, w.faulty.writes)
	require.Contains(t, w.log.String(), "id_looks_like_time")
	require.Equal(t, 1, w.run(batch...).Outcomes["applied"], "the stored id is an ordinary id")
}

func TestADocumentThatIsGoneIsDone(t *testing.T) {
	w := newWorld(t, 1)
	deleted := json.RawMessage(strings.Replace(result(1, 1, "ACME", ""), "{", `{"_etag":"\"1\"","_ts":1766000000,`, 1))
	report, err := w.offer(1, deleted)
	require.NoError(t, err)
	require.Equal(t, map[invoice.Outcome]int{"gone": 1}, report.Outcomes)
	require.Equal(t, 0, w.faulty.writes, "a deleted document is not written")
}

func TestABatchHeldForMoreThan30SecondsIsReadAgain(t *testing.T) {
	w := newWorld(t)
	var docs []string
	for i := range int64(101) { // two requests
		w.sink.AddLines(i + 1)
		docs = append(docs, document("id-"+string(rune('a'+i/26))+string(rune('a'+i%26)), i+1, "OLD", ""))
	}
	// With versions, only the age of the snapshots causes a read.
	for i := range docs {
		docs[i] = strings.Replace(docs[i], `"retry_count":0`, `"retry_count":0,"version":1765989000000000`, 1)
	}
	batch := w.put(docs...)
	w.faulty.afterApply = func(n int) error {
		if n == 1 {
			w.clock = w.clock.Add(31 * time.Second)
			w.put(strings.ReplaceAll(docs[100], "OLD", "NEW"))
		}
		return nil
	}
	report, err := w.offer(0, batch...)
	require.NoError(t, err)
	require.Equal(t, 101, report.Outcomes["applied"])
	require.Equal(t, 1, report.Reads)
	require.Equal(t, 101, w.faulty.records, "no patch met a document that had changed")
	require.Equal(t, "NEW", w.value(101, invoice.Detail, "CLN_MFR_AI_NM"))
}

func TestADocumentWhoseTextTheHostMayHaveReprintedIsReadAgain(t *testing.T) {
	w := newWorld(t, 1)
	doc := strings.Replace(result(1, 1, "ACME", ""), `"part_number":"425"`,
		`"part_number":"2025-12-17T10:30:01.1000000Z"`, 1)
	batch := w.put(doc)
	// the host rewrites the time
	batch[0] = json.RawMessage(strings.Replace(string(batch[0]), "01.1000000Z", "01.1Z", 1))
	report := w.run(batch...)
	require.Equal(t, 1, report.Reads)
	require.Equal(t, "2025-12-17T10:30:01.1000000Z", w.value(1, invoice.Detail, "CLN_MFR_PRT_NUM"))
}

func TestAnIdWithoutATimeGetsItsVersionRecordedBeforeItIsWritten(t *testing.T) {
	w := newWorld(t, 1)
	doc := document("no-time-here", 1, "ACME", "")
	batch := w.put(doc)
	w.faulty.onApply = func(int) error {
		require.Equal(t, float64(start().Unix()*1e6), w.state("no-time-here")["version"])
		return nil
	}
	report := w.run(batch...)
	require.Equal(t, 1, report.Outcomes["applied"])
	require.Equal(t, []int{2, 0}, []int{report.Writes, report.Reads},
		"the version's patch gives the etag for the outcome's")
	entry, ok := w.sink.Entry(1)
	require.True(t, ok)
	require.Equal(t, start().Unix()*1e6, entry.Version.US)
	require.Equal(t, float64(start().Unix()*1e6), w.state("no-time-here")["version"], "and it stays")
}

func TestWhatHasNoIdBlocksNobody(t *testing.T) {
	w := newWorld(t, 1)
	batch := append([]json.RawMessage{json.RawMessage(`"text"`), json.RawMessage(`{"no":"id"}`)},
		w.put(result(1, 1, "ACME", ""))...)
	report := w.run(batch...)
	require.Equal(t, map[invoice.Outcome]int{"applied": 1, "unreadable": 2}, report.Outcomes)
	require.Contains(t, w.log.String(), `"index":1`)
}

func TestADocumentTwiceInABatchIsTakenOnceByItsNewestSnapshot(t *testing.T) {
	w := newWorld(t, 1)
	old := w.put(result(1, 1, "OLD", ""))
	w.clock = w.clock.Add(time.Second)
	now := w.put(result(1, 1, "NEW", ""))
	report := w.run(now[0], old[0])
	require.Equal(t, map[invoice.Outcome]int{"applied": 1, "skipped": 1}, report.Outcomes)
	require.Equal(t, 0, report.Reads, "the newest snapshot's etag still holds")
	require.Equal(t, "NEW", w.value(1, invoice.Detail, "CLN_MFR_AI_NM"))
}

func TestAnEmptyBatchIsDone(t *testing.T) {
	w := newWorld(t)
	report := w.run()
	require.Empty(t, report.Outcomes)
	require.Equal(t, 0, w.faulty.writes)
}

// ADR 0002: the document names its outcome even when the invocation's time is over.
func TestRecordingOutlivesTheInvocation(t *testing.T) {
	w := newWorld(t, 1)
	doc := result(1, 1, "ACME", "")
	batch := w.put(doc)
	ctx, cancel := context.WithCancel(t.Context())
	w.faulty.afterApply = func(int) error { cancel(); return nil }
	_, err := w.commit.Run(ctx, commit.Delivery{Documents: batch, Received: w.clock})
	require.NoError(t, err)
	require.Equal(t, "committed", w.state(idOf(t, doc))["status"])
}
