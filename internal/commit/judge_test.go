package commit_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"sqlwriter/internal/fault"
	"sqlwriter/internal/invoice"
)

// once runs f before the first record only: the document changes between the write and the patch.
func once(f func()) func(int) error {
	return func(n int) error {
		if n == 1 {
			f()
		}
		return nil
	}
}

func TestAfterA412OtherContentIsWrittenInItsTurn(t *testing.T) {
	w := newWorld(t, 1)
	doc := result(1, 1, "OLD", "")
	batch := w.put(doc)
	w.faulty.onRecord = once(func() { w.clock = w.clock.Add(time.Second); w.put(result(1, 1, "NEW", "")) })
	report := w.run(batch...)
	require.Equal(t, map[invoice.Outcome]int{"applied": 1}, report.Outcomes)
	require.Equal(t, "NEW", w.value(1, invoice.Detail, "CLN_MFR_AI_NM"))
	require.Equal(t, "committed", w.state(idOf(t, doc))["status"])
	require.Equal(t, 0.0, w.state(idOf(t, doc))["retry_count"], "a lost race is never counted")
}

// Two contents within one second have no order. The 412 rule heals that even when another writer committed the other
// content.
func TestAfterA412OtherContentIsWrittenWhateverTheStatusSays(t *testing.T) {
	w := newWorld(t, 1)
	doc := result(1, 1, "OLD", "")
	batch := w.put(doc)
	w.faulty.onRecord = once(func() {
		w.put(result(1, 1, "NEW", `{"status":"committed","outcome":"applied","retry_count":0}`))
	})
	w.run(batch...)
	require.Equal(t, "NEW", w.value(1, invoice.Detail, "CLN_MFR_AI_NM"))
}

func TestAfterA412AVerdictOnTheSameContentIsRecordedOverFailed(t *testing.T) {
	w := newWorld(t, 1)
	doc := result(1, 1, "ACME", "")
	batch := w.put(doc)
	w.faulty.onRecord = once(func() {
		w.put(
			result(1, 1, "ACME",
				`{"status":"failed","retry_count":5,"error":"x","failed_at":"2025-12-17 11:45:00.000000-06:00"}`))
	})
	w.run(batch...)
	s := w.state(idOf(t, doc))
	require.Equal(t, "committed", s["status"])
	require.NotContains(t, s, "failed_at")
	require.NotContains(t, s, "error")
}

func TestAfterA412NothingIsRecordedTwice(t *testing.T) {
	w := newWorld(t, 1)
	doc := result(1, 1, "ACME", "")
	batch := w.put(doc)
	w.faulty.onRecord = once(func() {
		w.put(result(1, 1, "ACME", `{"status":"committed","outcome":"applied","retry_count":0,"committed_at":"then"}`))
	})
	require.Equal(t, map[invoice.Outcome]int{"skipped": 1}, w.run(batch...).Outcomes)
	require.Equal(t, "then", w.state(idOf(t, doc))["committed_at"], "every needless patch would come back on the feed")
	require.Equal(t, 1, w.faulty.records)
}

func TestAfterA412AFailureChangesOnlyAStatusThatIsOurs(t *testing.T) {
	for _, state := range []string{
		`{"status":"committed","retry_count":0}`,
		`{"status":"failed","retry_count":5}`,
		// another instance counted the same failure
		`{"status":"retry_scheduled","retry_count":1,"retry_after":99999999999}`,
		`{"status":"on_hold"}`,
	} {
		w := newWorld(t)
		doc := result(1, 7, "ACME", "")
		batch := w.put(doc)
		var after map[string]any
		w.faulty.onRecord = once(func() { w.put(result(1, 7, "ACME", state)); after = w.state(idOf(t, doc)) })
		report := w.run(batch...)
		require.Equal(t, map[invoice.Outcome]int{"skipped": 1}, report.Outcomes, state)
		require.Equal(t, after, w.state(idOf(t, doc)))
	}
}

func TestAfterA412ASupersededVerdictDoesNotOverwriteFailed(t *testing.T) {
	w := newWorld(t, 1)
	w.run(w.put(result(9, 1, "NEWER", ""))...)
	doc := result(1, 1, "OLD", "")
	batch := w.put(doc)
	w.faulty.records = 0
	w.faulty.onRecord = once(func() { w.put(result(1, 1, "OLD", `{"status":"failed","retry_count":5}`)) })
	require.Equal(t, 1, w.run(batch...).Outcomes["skipped"])
	require.Equal(t, "failed", w.state(idOf(t, doc))["status"])
}

func TestAfterA412ASupersededVerdictEndsARetry(t *testing.T) {
	w := newWorld(t, 1)
	w.run(w.put(result(9, 1, "NEWER", ""))...)
	doc := result(1, 1, "OLD", "")
	batch := w.put(doc)
	w.faulty.records = 0
	w.faulty.onRecord = once(func() {
		w.put(result(1, 1, "OLD", `{"status":"retry_scheduled","retry_count":1,"retry_after":99999999999}`))
	})
	require.Equal(t, 1, w.run(batch...).Outcomes["superseded"])
	require.Equal(t, "committed", w.state(idOf(t, doc))["status"])
}

func TestAfterA412ContentThatCannotBeWrittenIsJudgedAsItIsNow(t *testing.T) {
	w := newWorld(t, 1)
	doc := result(1, 1, "GOOD", "")
	batch := w.put(doc)
	w.faulty.onRecord = once(func() {
		w.put(
			strings.Replace(result(1, 1, "BAD", ""), `"part_number":"425"`,
				`"part_number":"425","unspsc_confidence":1.2`, 1))
	})
	require.Equal(t, map[invoice.Outcome]int{"retry_scheduled": 1}, w.run(batch...).Outcomes)
	require.Equal(t, "GOOD", w.value(1, invoice.Detail, "CLN_MFR_AI_NM"), "nothing of the bad content was written")
	require.Contains(t, w.state(idOf(t, doc))["last_error"], "unspsc_confidence")
}

func TestAfterA412ADocumentOfAnotherEnvironmentIsLeftAlone(t *testing.T) {
	w := newWorld(t, 1)
	doc := result(1, 1, "ACME", "")
	batch := w.put(doc)
	w.faulty.onRecord = once(func() { w.put(strings.ReplaceAll(doc, `"sys_name":"web"`, `"sys_name":"john"`)) })
	require.Equal(t, 1, w.run(batch...).Outcomes["skipped"])
	require.Equal(t, "pending", w.state(idOf(t, doc))["status"])
}

func TestADocumentThatNeverRestsIsLeftToTheTimer(t *testing.T) {
	w := newWorld(t, 1)
	doc := result(1, 1, "ACME", "")
	batch := w.put(doc)
	w.faulty.onRecord = func(int) error { w.put(doc); return nil }
	report := w.run(batch...)
	require.Equal(t, map[invoice.Outcome]int{"left": 1}, report.Outcomes)
	require.Contains(t, w.log.String(), "left to the recovery timer")
}

func refused(condition fault.Condition, code string) error {
	return &fault.Error{Kind: fault.Document, Condition: condition, Code: code, Op: "cosmos: patch"}
}

func TestWhatCannotBeRecorded(t *testing.T) {
	gone, tooLarge, other := refused(fault.Gone, "404"), refused(fault.TooLarge, "413"), refused("", "400")
	for name, c := range map[string]struct {
		err     func(n int) error
		want    map[invoice.Outcome]int
		logged  string
		records int
	}{
		"gone is done": {func(int) error { return gone }, map[invoice.Outcome]int{"gone": 1}, "", 1},
		"anything else is left": {func(int) error {
			return other
		}, map[invoice.Outcome]int{"left": 1}, "left to the recovery timer", 1},
		"too large even when short": {func(int) error {
			return tooLarge
		}, map[invoice.Outcome]int{"left": 1}, "MANUAL REVIEW", 2},
		"too large, short form fits": {onlyFirst(tooLarge), map[invoice.Outcome]int{"applied": 1}, "", 2},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, 1)
			batch := w.put(result(1, 1, "ACME", `{"status":"pending","retry_count":0,"note":"long"}`))
			w.faulty.onRecord = c.err
			require.Equal(t, c.want, w.run(batch...).Outcomes)
			require.Contains(t, w.log.String(), c.logged)
			require.Equal(t, c.records, w.faulty.records)
		})
	}
}

func onlyFirst(err error) func(int) error {
	return func(n int) error {
		if n == 1 {
			return err
		}
		return nil
	}
}

func TestARereadThatFindsCosmosDownWaits(t *testing.T) {
	w := newWorld(t, 1)
	doc := result(1, 1, "ACME", "")
	batch := w.put(doc)
	w.faulty.onRecord = once(func() { w.put(doc) })
	w.faulty.onRead = func(int) error { return down("cosmos: read") }
	report, err := w.offer(0, batch...)
	require.True(t, fault.IsDependency(err))
	require.Equal(t, map[invoice.Outcome]int{"waiting": 1}, report.Outcomes)
}

func TestVersionRaces(t *testing.T) {
	w := newWorld(t, 1, 2, 3)
	batch := w.put(document("a", 1, "OLD", ""), document("b", 2, "B", ""), document("c", 3, "C", ""))
	w.faulty.onRecord = once(func() {
		w.put(document("a", 1, "NEW", ""), document("b", 2, "B", `{"status":"committed"}`))
	})
	report := w.run(batch...)
	require.Equal(t, map[invoice.Outcome]int{"applied": 2, "skipped": 1}, report.Outcomes)
	require.Equal(t, "NEW", w.value(1, invoice.Detail, "CLN_MFR_AI_NM"))
	require.Equal(t, "NULL", w.value(2, invoice.Detail, "CLN_MFR_AI_NM"))

	w = newWorld(t, 1)
	batch = w.put(document("a", 1, "A", ""))
	w.faulty.onRecord = func(int) error { return down("cosmos: patch") }
	_, err := w.offer(0, batch...)
	require.True(t, fault.IsDependency(err))
	require.Equal(t, 0, w.faulty.writes, "without a version nothing is written")
}
