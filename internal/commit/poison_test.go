package commit_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"sqlwriter/internal/breaker"
	"sqlwriter/internal/commit"
	"sqlwriter/internal/fault"
	"sqlwriter/internal/invoice"
)

// spent is the state of a document whose retries are spent, an hour ago, and that is due. othersApply proves that
// failure.
func spent() string { return spentFor(2*time.Hour, time.Hour) }

// spentFor is spent of a document that failed first and last so long ago.
func spentFor(first, last time.Duration) string {
	at := func(ago time.Duration) string { return invoice.Stamp(start().Add(-ago), time.UTC) }
	return fmt.Sprintf(
		`{"status":"retry_scheduled","retry_count":5,"postponed":true,"retry_after":%d,"note":"keep me","last_error_kind":"document",
		"last_error_at":%q,"first_failed_at":%q,"attempts":[{"at":%q,"kind":"document","error":"first"}]}`, start().Unix()-1, at(last), at(first), at(first))
}

// evidenceFile is one file of the evidence, by the end of its name.
func (w *world) evidenceFile(ending string) map[string]any {
	w.t.Helper()
	for name, content := range w.evidence.Files() {
		if strings.HasSuffix(name, ending) {
			var members map[string]any
			require.NoError(w.t, json.Unmarshal(content, &members))
			return members
		}
	}
	require.Fail(w.t, "no such evidence", ending)
	return nil
}

// The fourth example of the requirements: the retries fail, then evidence, mark and status follow. Only what is written
// after the sixth failure proves it, so there is one more try (docs/rules.md).
func TestSeedExample4PoisonMessage(t *testing.T) {
	w := newWorld(t, 1421549, 1421550)
	doc := result(30, 1421549, tooLong(), "", 1421550)
	id := idOf(t, doc)
	w.run(w.put(doc)...)
	for retry, minutes := range []int64{2, 4, 8, 16, 32, 60} {
		s := w.state(id)
		require.Equal(t, "retry_scheduled", s["status"])
		require.Equal(t, float64(min(retry+1, 5)), s["retry_count"])
		require.Equal(t, retry == 5, s["postponed"] == true, "the sixth spends the retries")
		wait := minutes * 60
		require.Equal(t, float64(w.clock.Unix()+wait+wait/10), s["retry_after"])
		due := w.clock.Add(time.Duration(wait+wait/10) * time.Second)
		w.othersApply()
		w.clock = due
		if retry < 5 {
			require.Equal(t, map[invoice.Outcome]int{"retry_scheduled": 1}, w.retry(id).Outcomes)
		}
	}
	var order []string
	w.use(sinkHook{w.faulty, func(items []commit.Item) error {
		if items[0].FailureMark {
			require.Len(t, w.evidence.Files(), 3, "evidence comes first")
			order = append(order, "mark")
		}
		return nil
	}})
	w.faulty.onRecord = func(int) error {
		require.Equal(t, "AI-ERROR", w.value(1421549, invoice.Detail, "IVCE_LNE_STAT"),
			"the mark comes before the status")
		order = append(order, "status")
		return nil
	}
	require.Equal(t, map[invoice.Outcome]int{"failed": 1}, w.retry(id).Outcomes)
	require.Equal(t, []string{"mark", "status"}, order)

	s := w.state(id)
	require.Equal(t, "failed", s["status"])
	require.Equal(t, 5.0, s["retry_count"], "as the requirements have it: 5 retries, however many tries")
	require.Equal(t, invoice.Stamp(w.clock, chicago(t)), s["failed_at"])
	require.Contains(t, s["error"], "SQL Writer: Failed to process document after 5 retries: ")
	require.Contains(t, s["error"], "process_output.manufacturer_name")
	require.NotContains(t, s, "final_error")
	require.NotContains(t, s, "retry_after")
	require.NotContains(t, s, "postponed")
	require.Equal(t, invoice.Stamp(start(), chicago(t)), s["first_failed_at"])
	require.Len(t, s["attempts"], 7)
	for _, line := range []int64{1421549, 1421550} {
		require.Equal(t, "AI-ERROR", w.value(line, invoice.Detail, "IVCE_LNE_STAT"))
		require.Equal(t, "NULL", w.value(line, invoice.Detail, "CLN_MFR_AI_NM"), "nothing but the status is marked")
		entry, ok := w.sink.Entry(line)
		require.True(t, ok)
		require.Equal(t, id, entry.DocumentID)
		require.Empty(t, entry.Hash)
	}
}

// What keeps a document from its end for an hour is nothing that another document's write can end.
func TestAnHourWithoutAStoreForEvidenceIsNotCutShort(t *testing.T) {
	w := newWorld(t, 1)
	w.breaker, w.commit = w.instance("a", "v1", w.faulty, func(o *commit.Options) { o.Evidence = nil })
	w.othersApply()
	doc := result(30, 1, tooLong(), spent())
	require.Equal(t, map[invoice.Outcome]int{"retry_scheduled": 1}, w.again(doc).Outcomes)
	w.clock = w.clock.Add(2 * time.Minute)
	w.othersApply()
	require.Empty(t, w.tick().Found)
	w.clock = w.clock.Add(2 * time.Hour)
	require.Equal(t, map[commit.Window]int{commit.Blamed: 1}, w.tick().Found)
}

func TestTheEvidenceOfAPoisonMessage(t *testing.T) {
	w := newWorld(t, 1, 2)
	doc := result(30, 1, tooLong(), spent(), 2)
	id := idOf(t, doc)
	w.othersApply()
	batch := w.put(doc)
	etag := invoiceOf(t, batch[0]).ETag
	report, err := w.batch(commit.Delivery{Documents: batch, Purpose: commit.FromTimer, RunID: "run-7"})
	require.NoError(t, err)
	require.Equal(t, map[invoice.Outcome]int{"failed": 1}, report.Outcomes)

	d := invoiceOf(t, batch[0])
	folder := "failed/1/2025-12-17%2010%3A30%3A00.000000-06%3A00-0001-1/20251218T140000.000000Z-" + d.Hash + "/"
	var names []string
	for name := range w.evidence.Files() {
		names = append(names, name)
	}
	require.ElementsMatch(t, []string{folder + "original.json", folder + "error.json", folder + "metadata.json"}, names)
	require.JSONEq(t, string(batch[0]), string(w.evidence.Files()[folder+"original.json"]))

	e := w.evidenceFile("error.json")
	require.Equal(t, []any{id, "run-7", "2025-12-18 10:01:00.000000-06:00", 5.0, "document", "validation.too_long"},
		[]any{
			e["document_id"], e["run_id"], e["failed_at"], e["retry_count"], e["last_error_kind"], e["last_error_code"],
		})
	require.Contains(t, e["last_error"], "process_output.manufacturer_name")
	require.Len(t, e["attempts"], 2)
	m := w.evidenceFile("metadata.json")
	require.Equal(t,
		[]any{
			"AI_PROCESS_LOGS", id, etag, "web", 1.0,
			[]any{2.0},
			d.Hash, 0.0, "v1",
			float64(d.Version.US), d.Version.Key,
		},
		[]any{
			m["container"], m["document_id"], m["etag"], m["sys_name"], m["main_detail_id"],
			m["duplicate_detail_ids"], m["content_hash"],
			m["reprocess_count"], m["app_version"], m["version_us"], m["document_key"],
		})
	require.Equal(t, "keep me", w.state(id)["note"])
	require.NotContains(t, w.log.String(), strings.Repeat("x", 40), "no content in the log")
}

func TestAMarkThatIsRefusedIsManualReview(t *testing.T) {
	for name, use := range map[string]func(*world) commit.Sink{
		"by the database": func(w *world) commit.Sink {
			return sinkHook{w.faulty, func(items []commit.Item) error {
				if items[0].FailureMark {
					return fault.New(fault.Document, "sql: apply", "547", "a constraint refuses the row")
				}
				return nil
			}}
		},
		"by the sink, which sends nothing": func(w *world) commit.Sink { return markRefuser{w.faulty} },
	} {
		t.Run(name, func(t *testing.T) { markIsRefused(t, use) })
	}
}

func markIsRefused(t *testing.T, use func(*world) commit.Sink) {
	w := newWorld(t, 1, 2)
	w.use(use(w))
	doc := result(30, 1, tooLong(), spent(), 2)
	w.othersApply()
	require.Equal(t, map[invoice.Outcome]int{"failed": 1}, w.again(doc).Outcomes)
	s := w.state(idOf(t, doc))
	require.Equal(t, "failed", s["status"])
	require.Contains(t, s["final_error"], "MANUAL REVIEW: AI-ERROR could not be set for lines 1, 2")
	require.Contains(t, w.log.String(), "MANUAL REVIEW")
	require.Contains(t, w.log.String(), `"line":1,"duplicates":[2]`)
	require.Equal(t, "NULL", w.value(1, invoice.Detail, "IVCE_LNE_STAT"))
}

func TestADependencyErrorAtTheMarkChangesNothing(t *testing.T) {
	w := newWorld(t, 1)
	marks := 0
	w.use(sinkHook{w.faulty, func(items []commit.Item) error {
		if items[0].FailureMark {
			if marks++; marks == 1 {
				w.away(true)
				return down("sql: apply")
			}
		}
		return nil
	}})
	doc := result(30, 1, tooLong(), spent())
	id := idOf(t, doc)
	w.othersApply()
	before := w.put(doc)
	report, err := w.batch(commit.Delivery{Documents: before, Purpose: commit.FromTimer})
	require.True(t, fault.IsDependency(err))
	require.Equal(t, map[invoice.Outcome]int{"waiting": 1}, report.Outcomes)
	require.Equal(t, before, w.snapshots(id), "the document is unchanged")
	first := w.evidence.Files()
	w.away(false)
	w.clock = w.clock.Add(2 * time.Minute)
	require.Equal(t, 1, w.retry(id).Outcomes["failed"], "and the next try ends it")
	require.Equal(t, first, w.evidence.Files(), "with the evidence of the first try")
}

// A failed document is made anew as a whole, sql_writer included, and fails with the same values: that failure has
// evidence of its own, with the document of now.
func TestADocumentThatIsMadeAnewHasEvidenceOfItsOwn(t *testing.T) {
	w := newWorld(t, 1)
	fails := func(doc string) (since []string) {
		before := w.evidence.Files()
		w.again(doc)
		for range 6 {
			w.clock = w.clock.Add(2 * time.Hour)
			w.othersApply()
			w.retry(idOf(t, doc))
		}
		require.Equal(t, "failed", w.status(idOf(t, doc)))
		for name := range w.evidence.Files() {
			if _, there := before[name]; !there {
				since = append(since, name)
			}
		}
		slices.Sort(since)
		return since
	}
	doc := result(30, 1, tooLong(), "")
	began := w.clock
	require.Len(t, fails(doc), 3)
	w.clock = w.clock.Add(365 * 24 * time.Hour)
	again := w.clock
	second := fails(strings.Replace(doc, `{"id"`, `{"note":"made anew","id"`, 1))
	require.Len(t, second, 3)
	require.Contains(t, string(w.evidence.Files()[second[2]]), "made anew")
	var why commit.PoisonError
	require.NoError(t, json.Unmarshal(w.evidence.Files()[second[0]], &why))
	require.Equal(t, w.state(idOf(t, doc))["failed_at"], why.FailedAt)
	require.Contains(t, second[0], "/"+again.Format("20060102T150405.000000Z")+"-", "when it began to fail")
	for name := range w.evidence.Files() {
		require.Regexp(t, "/("+began.Format("20060102T150405")+"|"+again.Format("20060102T150405")+")[.]0{6}Z-", name)
	}
}

// A mark that alone fails like an outage is not an outage: nothing is counted, and nothing is final.
func TestAMarkThatFailsLikeAnOutageWaits(t *testing.T) {
	w := newWorld(t, 1)
	w.use(sinkHook{w.faulty, func(items []commit.Item) error {
		if items[0].FailureMark {
			return down("sql: apply")
		}
		return nil
	}})
	doc := result(30, 1, tooLong(), spent())
	w.othersApply()
	require.Equal(t, map[invoice.Outcome]int{"retry_scheduled": 1}, w.again(doc).Outcomes)
	s := w.state(idOf(t, doc))
	require.Equal(t, []any{5.0, true, float64(w.clock.Unix() + 132), "document"},
		[]any{s["retry_count"], s["postponed"], s["retry_after"], s["last_error_kind"]})
	require.False(t, w.opened())
}

// A wait is recorded, which raises _ts: the next try has the same evidence, also where nobody knows when it
// began to fail.
func TestATryAfterAWaitHasTheSameEvidence(t *testing.T) {
	w := newWorld(t, 1)
	w.use(sinkHook{w.faulty, func(items []commit.Item) error {
		if items[0].FailureMark {
			return down("sql: apply")
		}
		return nil
	}})
	doc := result(30, 1, tooLong(), strings.Replace(spent(), "first_failed_at", "changed_by_hand", 1))
	w.put(doc)
	w.clock = w.clock.Add(time.Minute)
	w.othersApply()
	require.Equal(t, map[invoice.Outcome]int{"retry_scheduled": 1}, w.retry(idOf(t, doc)).Outcomes)
	require.Len(t, w.evidence.Files(), 3)
	w.use(w.faulty)
	w.clock = w.clock.Add(2 * time.Hour)
	w.othersApply()
	require.Equal(t, map[invoice.Outcome]int{"failed": 1}, w.retry(idOf(t, doc)).Outcomes)
	require.Len(t, w.evidence.Files(), 3)
}

// Marks are made concurrently: the race detector checks their shared state.
func TestMarksThatFailLikeAnOutageSideBySide(t *testing.T) {
	w := newWorld(t)
	var together sync.WaitGroup // all sixteen are asked for before the first is answered
	together.Add(16)
	var asked atomic.Int64
	_, committer := w.instance("b", "v1", sinkHook{w.faulty, func(items []commit.Item) error {
		if !items[0].FailureMark || asked.Add(1) > 16 {
			return nil
		}
		together.Done()
		together.Wait()
		return down("sql: apply")
	}}, func(o *commit.Options) { o.Parallel = 16 })
	w.othersApply()
	var docs []string
	for n := range 16 {
		docs = append(docs, result(n, int64(n+1), tooLong(), spent()))
		w.sink.AddLines(int64(n + 1))
	}
	report, err := committer.Run(t.Context(),
		commit.Delivery{Documents: w.put(docs...), Received: w.clock, Purpose: commit.FromTimer})
	require.NoError(t, err)
	require.Equal(t, map[invoice.Outcome]int{"failed": 16}, report.Outcomes, "each gets one more try")
}

func TestWhileBlobStorageIsDownNothingIsMarkedOrCounted(t *testing.T) {
	w := newWorld(t, 1, 2)
	evidence := &brokenEvidence{Evidence: w.evidence, down: true}
	w.breaker, w.commit = w.instance("b", "v1", w.faulty, func(o *commit.Options) { o.Evidence = evidence })
	docs := []string{result(30, 1, tooLong(), spent()), result(31, 2, tooLong(), spent())}
	w.othersApply()
	require.Equal(t, map[invoice.Outcome]int{"retry_scheduled": 2}, w.again(docs...).Outcomes)
	require.Equal(t, 1, evidence.asked, "a store that is down is not asked for every document of a batch")
	for i, doc := range docs {
		s := w.state(idOf(t, doc))
		require.Equal(t, "retry_scheduled", s["status"])
		require.Equal(t, []any{5.0, true}, []any{s["retry_count"], s["postponed"]})
		require.Equal(t, float64(w.clock.Unix()+132), s["retry_after"], "2 minutes plus half of 20 %")
		require.Equal(t, "NULL", w.value(int64(i+1), invoice.Detail, "IVCE_LNE_STAT"))
	}
	evidence.down = false
	w.othersApply()
	w.clock = w.clock.Add(3 * time.Minute)
	require.Equal(t, map[invoice.Outcome]int{"failed": 2}, w.retry(idOf(t, docs[0]), idOf(t, docs[1])).Outcomes)
}

func TestAMarkWhoseLinesHoldTheContentOrNewerIsNoPoisonMessage(t *testing.T) {
	w := newWorld(t, 1, 2)
	on := false
	w.use(sinkHook{w.faulty, refuse(&on)})
	held, older := result(30, 1, "ACME", ""), result(31, 2, "ACME", "")
	w.run(w.put(held, older)...)
	newer := result(45, 2, "NEWER", "")
	w.run(w.put(newer)...)

	on = true // a column was made stricter meanwhile; both come again with their budgets spent
	w.othersApply()
	w.put(strings.Replace(held, `{"status":"pending","retry_count":0}`, spent(), 1),
		strings.Replace(older, `{"status":"pending","retry_count":0}`, spent(), 1))
	report := w.retry(idOf(t, held), idOf(t, older))
	require.Equal(t, map[invoice.Outcome]int{"unchanged": 1, "superseded": 1}, report.Outcomes)
	require.Equal(t, "committed", w.state(idOf(t, held))["status"])
	require.Equal(t, []any{"committed", "superseded", idOf(t, newer)},
		[]any{
			w.state(idOf(t, older))["status"], w.state(idOf(t, older))["outcome"],
			w.state(idOf(t, older))["superseded_by"],
		})
	require.Equal(t, "RC-AI", w.value(1, invoice.Detail, "IVCE_LNE_STAT"))
}

func TestAMissingLineDropsOutOfTheMarkAlone(t *testing.T) {
	w := newWorld(t, 1)
	doc := result(30, 1, "ACME", spent(), 77)
	w.othersApply()
	require.Equal(t, map[invoice.Outcome]int{"failed": 1}, w.again(doc).Outcomes)
	s := w.state(idOf(t, doc))
	require.Contains(t, s["final_error"], "no row in IVCE_DTL: lines 77")
	require.Equal(t, "AI-ERROR", w.value(1, invoice.Detail, "IVCE_LNE_STAT"))

	gone := result(31, 78, "ACME", spent())
	require.Equal(t, map[invoice.Outcome]int{"failed": 1}, w.again(gone).Outcomes)
	require.Contains(t, w.state(idOf(t, gone))["final_error"], "78")
}

func TestADocumentOfTheFutureIsNeverMarked(t *testing.T) {
	w := newWorld(t, 1)
	doc := document("2031-01-01 10:00:00.000000-06:00-0001-1", 1, "ACME", spent())
	w.othersApply()
	require.Equal(t, map[invoice.Outcome]int{"failed": 1}, w.again(doc).Outcomes)
	require.Contains(t, w.state(idOf(t, doc))["final_error"], "future")
	_, there := w.sink.Entry(1)
	require.False(t, there, "its version never enters the ledger")
}

func TestReprocessTakesFailedDocumentsOverDirectly(t *testing.T) {
	w := newWorld(t, 1, 2)
	bad := result(30, 1, tooLong(), spent(), 2)
	id := idOf(t, bad)
	w.othersApply()
	w.again(bad)
	require.Equal(t, "AI-ERROR", w.value(2, invoice.Detail, "IVCE_LNE_STAT"))

	reprocess := func() commit.Report {
		report, err := w.commit.Run(t.Context(),
			commit.Delivery{
				Documents: w.snapshots(id), Received: w.clock, Purpose: commit.ForRun,
				TakeOver: replayed(), RunID: "run-1",
			})
		require.NoError(t, err)
		return report
	}
	require.Equal(t, map[invoice.Outcome]int{"skipped": 1}, w.run(w.snapshots(id)...).Outcomes, "no other job takes it")

	// The document is still bad: its retries begin anew, and the second poison message has evidence of its own.
	require.Equal(t, map[invoice.Outcome]int{"retry_scheduled": 1}, reprocess().Outcomes)
	require.Equal(t, []any{1.0, 1.0}, []any{w.state(id)["retry_count"], w.state(id)["reprocess_count"]})
	require.NotContains(t, w.state(id), "failed_at")
	for range 6 {
		w.clock = w.clock.Add(2 * time.Hour)
		w.othersApply()
		w.retry(id)
	}
	require.Equal(t, "failed", w.state(id)["status"])
	require.Len(t, w.evidence.Files(), 6)

	// After a fix: committed from failed, and AI-ERROR is replaced.
	fixed := result(30, 1, "ACME",
		`{"status":"failed","retry_count":5,"reprocess_count":1,"failed_at":"x","error":"e"}`, 2)
	w.clock = w.clock.Add(time.Minute)
	w.put(fixed)
	require.Equal(t, map[invoice.Outcome]int{"applied": 1}, reprocess().Outcomes)
	require.Equal(t, []any{"committed", 0.0, 2.0},
		[]any{w.state(id)["status"], w.state(id)["retry_count"], w.state(id)["reprocess_count"]})
	require.Equal(t, "RC-AI", w.value(1, invoice.Detail, "IVCE_LNE_STAT"))
	require.Equal(t, "RC-AI", w.value(2, invoice.Detail, "IVCE_LNE_STAT"))
}

func TestAPoisonMessageThatChangesMeanwhileIsLookedAtAgain(t *testing.T) {
	w := newWorld(t, 1)
	doc := result(30, 1, tooLong(), spent())
	w.othersApply()
	batch := w.put(doc)
	w.clock = w.clock.Add(time.Second)
	w.put(result(30, 1, "CORRECTED", spent()))
	report, err := w.batch(commit.Delivery{Documents: batch, Purpose: commit.FromTimer})
	require.NoError(t, err)
	require.Equal(t, map[invoice.Outcome]int{"applied": 1}, report.Outcomes)
	require.Empty(t, w.evidence.Files())
	require.Equal(t, "CORRECTED", w.value(1, invoice.Detail, "CLN_MFR_AI_NM"))
}

func TestLongAndStrangeIdsHaveEvidenceOfTheirOwn(t *testing.T) {
	w := newWorld(t, 1, 2, 3, 4)
	w.othersApply()
	for i, id := range []string{
		"ends with a dot.", "ünï %2F ..", strings.Repeat("ü", 250), strings.Repeat("ü", 249) + "x",
	} {
		doc := document(id, int64(i+1), tooLong(), spent())
		require.Equal(t, map[invoice.Outcome]int{"failed": 1}, w.again(doc).Outcomes, id)
	}
	for _, end := range []string{"a", "b"} { // only the ends of the ids differ
		doc := fmt.Sprintf(`{"id":%q,"request_details":{"sys_name":"web"},"process_output":{},"sql_writer":%s}`,
			strings.Repeat("ü", 249)+end, spent())
		require.Equal(t, map[invoice.Outcome]int{"failed": 1}, w.again(doc).Outcomes)
	}
	require.Len(t, w.evidence.Files(), 6*3)
}

// The second example of the requirements, with an own error of the document in place of the time-out (ADR 0002).
func TestSeedExample2ErrorWithRetry(t *testing.T) {
	w := newWorld(t)
	doc := result(30, 1421549, "THOMAS & BETTS", "")
	id := idOf(t, doc)
	require.Equal(t, map[invoice.Outcome]int{"retry_scheduled": 1}, w.run(w.put(doc)...).Outcomes)
	s := w.state(id)
	require.Equal(t, []any{"retry_scheduled", 1.0, float64(start().Unix() + 132), "2025-12-18 10:00:00.000000-06:00"},
		[]any{s["status"], s["retry_count"], s["retry_after"], s["last_error_at"]})
	require.NotEmpty(t, s["last_error"])

	w.sink.AddLines(1421549) // the row exists now
	w.clock = w.clock.Add(132 * time.Second)
	require.Equal(t, map[invoice.Outcome]int{"applied": 1}, w.retry(id).Outcomes)
	s = w.state(id)
	require.Equal(t, []any{"committed", 1.0, "2025-12-18 10:02:12.000000-06:00"},
		[]any{s["status"], s["retry_count"], s["committed_at"]})
	require.NotContains(t, s, "last_error")
	require.NotContains(t, s, "retry_after")
}

// The third example of the requirements, as promise G5 states it: five failures in a row open the breaker for 60 s, one
// probe closes it again, and no document has spent a retry (ADR 0002).
func TestSeedExample3CircuitBreakerOpens(t *testing.T) {
	w := newWorld(t, 1, 2, 3, 4, 5, 6)
	var docs []string
	for line := int64(1); line <= 6; line++ {
		docs = append(docs, result(int(line), line, "ACME", ""))
	}
	batch := w.put(docs...)
	w.away(true)
	_, err := w.offer(0, batch...)
	require.True(t, fault.IsDependency(err))
	require.False(t, breaker.IsRefusal(err))
	require.Equal(t, []int{1, 5}, []int{w.faulty.writes, w.faulty.beats}, "heartbeats find out, 10 s apart")
	require.True(t, w.opened())
	for n := range 5 {
		_, err := w.offer(1+n, batch...)
		require.True(t, breaker.IsRefusal(err), "nothing passes for 60 s")
		w.clock = w.clock.Add(10 * time.Second)
	}
	require.Equal(t, []int{1, 5}, []int{w.faulty.writes, w.faulty.beats})
	for _, d := range docs {
		require.Equal(t, map[string]any{"status": "pending", "retry_count": 0.0}, w.state(idOf(t, d)))
	}
	w.away(false)
	// the rest of the minute, its jitter, and the extra wait of the instance that opened the breaker
	w.clock = w.clock.Add(30 * time.Second)
	require.Equal(t, map[invoice.Outcome]int{"applied": 6}, w.run(batch...).Outcomes)
	require.False(t, w.opened())
}

func invoiceOf(t *testing.T, raw json.RawMessage) invoice.Document {
	t.Helper()
	d, err := invoice.Reader{}.Read(raw, start())
	require.NoError(t, err)
	return d
}

// What evidence says of a document's state is what the document says: it can be put back as it was.
func TestAStateIsRestoredFromItsEvidence(t *testing.T) {
	w := newWorld(t, 1)
	w.othersApply()
	doc := result(30, 1, tooLong(),
		strings.Replace(spent(), `{"status"`, `{"version":7,"reprocess_count":2,"status"`, 1))
	report, err := w.batch(commit.Delivery{Documents: w.put(doc), Purpose: commit.FromTimer})
	require.NoError(t, err)
	require.Equal(t, map[invoice.Outcome]int{"failed": 1}, report.Outcomes)
	raw, err := w.docs.Read(t.Context(), idOf(t, doc))
	require.NoError(t, err)
	recorded := invoiceOf(t, raw).State
	var failure commit.PoisonError
	var before invoice.State
	for file, content := range w.evidence.Files() {
		switch {
		case strings.HasSuffix(file, commit.EvidenceError):
			require.NoError(t, json.Unmarshal(content, &failure))
		case strings.HasSuffix(file, commit.EvidenceOriginal):
			before = invoiceOf(t, content).State
		}
	}
	require.Equal(t, invoice.RetryScheduled, before.Status)
	restored := failure.Restored(before)
	require.Contains(t, recorded.Error, restored.Error, "without the words around it")
	restored.Error, restored.StatusFound = recorded.Error, recorded.StatusFound
	require.Equal(t, recorded, restored)
}
