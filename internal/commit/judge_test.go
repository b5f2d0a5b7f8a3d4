package commit_test

import (
	"fmt"
	"strings"
	"testing"

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

// A document that changed between its write and its patch is judged as it is now. Two contents within one second have
// no order: other content is written whatever its status says. A state that is kept is not patched again, because
// every needless patch would come back on the feed.
func TestAfterA412(t *testing.T) {
	const (
		committed = `{"status":"committed","outcome":"applied","retry_count":0,"committed_at":"then"}`
		failed    = `{"status":"failed","retry_count":5,"error":"x","failed_at":"2025-12-17 11:45:00.000000-06:00"}`
		counted   = `{"status":"retry_scheduled","retry_count":1,"retry_after":99999999999}` // by another instance
		onHold    = `{"status":"on_hold","retry_count":0}`
	)
	old, missing := result(1, 1, "OLD", ""), result(1, 7, "ACME", "")
	for name, c := range map[string]struct {
		before, after string
		// newer says that the line has another document's newer content.
		newer bool
		want  invoice.Outcome
		// status is the one that is recorded; empty if the document stays as it was put.
		status, maker, says string
	}{
		"other content": {old, result(1, 1, "NEW", ""), false, "applied", "committed", "NEW", ""},
		"other content that is committed": {
			old, result(1, 1, "NEW", committed), false, "skipped", "", "NEW", "",
		},
		"other content that is refused": {
			old, strings.Replace(result(1, 1, "NEW", ""), `"425"`, `"425","unspsc_confidence":1.2`, 1), false,
			"retry_scheduled", "retry_scheduled", "OLD", "unspsc_confidence",
		},
		"other content of an unknown status": {old, result(1, 1, "NEW", onHold), false, "skipped", "", "OLD", ""},
		"another environment": {
			old, strings.ReplaceAll(old, `"sys_name":"web"`, `"sys_name":"john"`), false, "skipped", "", "OLD", "",
		},
		"the same that failed":         {old, result(1, 1, "OLD", failed), false, "applied", "committed", "OLD", ""},
		"the same that is committed":   {old, result(1, 1, "OLD", committed), false, "skipped", "", "OLD", ""},
		"superseded, and it failed":    {old, result(1, 1, "OLD", failed), true, "skipped", "", "NEWER", ""},
		"superseded, and is committed": {old, result(1, 1, "OLD", committed), true, "skipped", "", "NEWER", ""},
		"superseded, and waits": {
			old, result(1, 1, "OLD", counted), true, "superseded", "committed", "NEWER", "",
		},
		"a failure, and it is committed": {missing, result(1, 7, "ACME", committed), false, "skipped", "", "", ""},
		"a failure, and it failed":       {missing, result(1, 7, "ACME", failed), false, "skipped", "", "", ""},
		"a failure that is counted":      {missing, result(1, 7, "ACME", counted), false, "skipped", "", "", ""},
		"a failure of an unknown status": {missing, result(1, 7, "ACME", onHold), false, "skipped", "", "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, 1)
			if c.newer {
				w.run(w.put(result(9, 1, "NEWER", ""))...)
			}
			batch, id := w.put(c.before), idOf(t, c.before)
			w.faulty.records = 0
			var put map[string]any
			w.faulty.onRecord = once(func() { w.put(c.after); put = w.state(id) })
			require.Equal(t, map[invoice.Outcome]int{c.want: 1}, w.run(batch...).Outcomes)
			if s := w.state(id); c.status == "" {
				require.Equal(t, put, s)
				require.Equal(t, 1, w.faulty.records)
			} else {
				require.Equal(t, c.status, s["status"])
				require.NotContains(t, s, "failed_at")
				require.NotContains(t, s, "error")
				require.Contains(t, fmt.Sprint(s["last_error"]), c.says)
			}
			if c.status == "committed" && !c.newer {
				require.NotEqual(t, 1.0, w.state(id)["retry_count"], "a lost race is never counted")
			}
			if c.maker != "" {
				require.Equal(t, c.maker, w.value(1, invoice.Detail, "CLN_MFR_AI_NM"))
			}
		})
	}
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
