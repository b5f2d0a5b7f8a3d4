package ops_test

import (
	"context"
	"encoding/json"
	"path"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"sqlwriter/internal/breaker"
	"sqlwriter/internal/fault"
	"sqlwriter/internal/invoice"
	"sqlwriter/internal/ops"
	"sqlwriter/test/inmem"
)

// scheduled is sql_writer of a document with three failures whose next try is some minutes after ten in Chicago.
const scheduledAt = `{"status":"retry_scheduled","retry_count":3,"retry_after":%RETRY%,
	"last_error":"too long","last_error_kind":"document","last_error_code":"2628","last_error_at":"2025-12-18 09:46:00.000000-06:00",
	"attempts":[{"at":"2025-12-18 09:30:00.000000-06:00","kind":"document","code":"2628","error":"too long","next_try":"2025-12-18 09:38:00.000000-06:00"},
	{"at":"2025-12-18 09:46:00.000000-06:00","kind":"document","code":"2628","error":"too long","next_try":"2025-12-18 10:20:00.000000-06:00"}]}`

func scheduled(at time.Time) string { return replace(scheduledAt, at) }

func TestWhy(t *testing.T) {
	ten := start()
	for name, c := range map[string]struct {
		state, sysName string
		flow           func(*world)
		summary, next  string
		nextTry        string
	}{
		"never seen": {
			state: `{"status":"pending"}`, summary: "pending; waiting for 6 s",
			next: "the change feed brings it; if not within 10 min, or twice its lag, the recovery timer takes it up",
		},
		"no sql_writer": {
			state: `null`, summary: "it was never offered: it has no sql_writer.status",
			next: "nothing: it is left alone until a person sets sql_writer.status to pending",
		},
		"status null": {
			state: `{"status":null,"retry_count":2}`, flow: func(w *world) {
				w.pausedSince(3 * time.Minute)
			}, summary: "it was never offered: it has no sql_writer.status",
			next: "nothing: it is left alone until a person sets sql_writer.status to pending",
		},
		"reset by hand": {
			state:   `{"status":"pending","retry_count":5,"failed_at":"2025-12-18 09:00:00.000000-06:00"}`,
			summary: "pending, reset by hand: its retries start anew; waiting for 6 s",
			next:    "the change feed brings it; if not within 10 min, or twice its lag, the recovery timer takes it up",
		},
		"not due": {
			state:   scheduled(ten.Add(20 * time.Minute)),
			summary: "3 of 5 retries used; next try 2025-12-18T10:20:00-06:00",
			next:    "the recovery timer takes it up at its first tick after 2025-12-18T10:20:00-06:00",
			nextTry: "2025-12-18T10:20:00-06:00",
		},
		"not due today": {
			state:   scheduled(ten.Add(20 * time.Hour)),
			summary: "3 of 5 retries used; next try 2025-12-19T06:00:00-06:00",
			next:    "the recovery timer takes it up at its first tick after 2025-12-19T06:00:00-06:00",
			nextTry: "2025-12-19T06:00:00-06:00",
		},
		"due": {
			state:   scheduled(ten.Add(-3 * time.Minute)),
			summary: "3 of 5 retries used; due since 2025-12-18T09:57:00-06:00",
			next:    "the recovery timer takes it up at its next tick",
		},
		"due, no time": {
			state: `{"status":"Retry_Scheduled","retry_count":1}`, summary: "1 of 5 retries used; due",
			next: "the recovery timer takes it up at its next tick",
		},
		"due, in milliseconds": {
			state:   scheduled(ten.Add(20_000 * time.Hour)),
			summary: "3 of 5 retries used; due since 2025-12-18T10:00:06-06:00",
			next:    "the recovery timer takes it up at its next tick",
		},
		"in milliseconds, paused": {
			state: scheduled(ten.Add(20_000 * time.Hour)), flow: func(w *world) { w.pausedSince(3 * time.Minute) },
			summary: "3 of 5 retries used; 0 s waiting because the flow is paused, not counted; next try after a resume",
			next:    "the flow is paused by kim since 2025-12-18T09:57:00-06:00: maintenance",
		},
		"spent": {
			state: `{"status":"retry_scheduled","retry_count":5,"retry_after":1766074800,"postponed":true,"first_failed_at":"2025-12-18 08:50:00.000000-06:00",
				"last_error_kind":"document","last_error_code":"547"}`,
			summary: "5 of 5 retries used, and it failed again: it becomes a poison message at its next failure, if another document was applied at least 60 s " +
				"after the one before, or after 2025-12-19T08:50:00-06:00, which is a day after its first failure; next try 2025-12-18T10:20:00-06:00",
			next:    "the recovery timer takes it up at its first tick after 2025-12-18T10:20:00-06:00, or when another document was applied at least 60 s after the failure",
			nextTry: "2025-12-18T10:20:00-06:00",
		},
		"due, flow stopped": {
			state: scheduled(ten.Add(-3 * time.Minute)), flow: func(w *world) {
				w.openSince(fault.Infrastructure, "refused", 41*time.Minute, 20*time.Minute)
			},
			summary: "3 of 5 retries used; 3 min waiting because the flow is stopped, not counted; next try 2025-12-18T10:20:00-06:00",
			next:    "the flow is stopped since 2025-12-18T09:19:00-06:00 (infrastructure refused: set by the test), next probe in 19m54s: when a probe succeeds, it is taken up",
			nextTry: "2025-12-18T10:20:00-06:00",
		},
		"long due, flow stopped": {
			state: scheduled(ten.Add(-3 * time.Hour)), flow: func(w *world) {
				w.openSince(fault.Infrastructure, "refused", 41*time.Minute, 20*time.Minute)
			},
			summary: "3 of 5 retries used; 41 min waiting because the flow is stopped, not counted; next try 2025-12-18T10:20:00-06:00",
			next:    "the flow is stopped since 2025-12-18T09:19:00-06:00 (infrastructure refused: set by the test), next probe in 19m54s: when a probe succeeds, it is taken up",
			nextTry: "2025-12-18T10:20:00-06:00",
		},
		"not due, flow stopped for longer": {
			state: scheduled(ten.Add(5 * time.Minute)), flow: func(w *world) {
				w.openSince(fault.Quota, "9002", time.Minute, time.Hour)
			},
			summary: "3 of 5 retries used; next try 2025-12-18T11:00:00-06:00",
			next:    "the recovery timer takes it up at its first tick after 2025-12-18T11:00:00-06:00",
			nextTry: "2025-12-18T11:00:00-06:00",
		},
		"due, paused": {
			state: scheduled(ten.Add(-30 * time.Minute)), flow: func(w *world) { w.pausedSince(3 * time.Minute) },
			summary: "3 of 5 retries used; 3 min waiting because the flow is paused, not counted; next try after a resume",
			next:    "the flow is paused by kim since 2025-12-18T09:57:00-06:00: maintenance",
		},
		"pending, flow stopped": {
			state: `{"status":"pending"}`, flow: func(w *world) {
				w.openSince(fault.Throttled, "40501", time.Hour, time.Minute)
			},
			summary: "pending; 6 s waiting because the flow is stopped, not counted; next try 2025-12-18T10:01:00-06:00",
			next:    "the flow is stopped since 2025-12-18T09:00:00-06:00 (throttled 40501: set by the test), next probe in 54s: when a probe succeeds, it is taken up", nextTry: "2025-12-18T10:01:00-06:00",
		},
		"pending, ramping up": {
			state: `{"status":"pending"}`, flow: func(w *world) {
				w.set(
					breaker.State{
						Name: breaker.HalfOpen, Limit: 5, Kind: fault.Infrastructure, Code: "refused",
						Reason: "x", Since: start(),
					})
			},
			summary: "pending; waiting for 6 s",
			next:    "the flow is ramping up, at most 5 in one request; it was stopped since 2025-12-18T10:00:00-06:00 (infrastructure refused: x): it is taken up as more may pass",
		},
		"due, ramping up": {
			state: scheduled(ten.Add(-3 * time.Minute)), flow: func(w *world) {
				w.set(breaker.State{Name: breaker.HalfOpen, Limit: 5})
			},
			summary: "3 of 5 retries used; due since 2025-12-18T09:57:00-06:00",
			next:    "the recovery timer takes it up at its next tick; the flow is ramping up, at most 5 in one request",
		},
		"put off": {
			state:   `{"status":"retry_scheduled","retry_count":2,"retry_after":1766074800,"postponed":true,"last_error_kind":"contention","last_error_code":"1222"}`,
			summary: "2 of 5 retries used; put off: it was tried and not judged (contention 1222), so nothing was counted; next try 2025-12-18T10:20:00-06:00",
			next:    "the recovery timer takes it up at its first tick after 2025-12-18T10:20:00-06:00, or when another document was applied at least 60 s after the failure",
			nextTry: "2025-12-18T10:20:00-06:00",
		},
		"spent, without the time of its first failure": {
			state: `{"status":"retry_scheduled","retry_count":5,"retry_after":1766074800,"postponed":true}`,
			summary: "5 of 5 retries used, and it failed again: it becomes a poison message at its next failure, if another document was applied at least 60 s " +
				"after the one before; next try 2025-12-18T10:20:00-06:00",
			next:    "the recovery timer takes it up at its first tick after 2025-12-18T10:20:00-06:00, or when another document was applied at least 60 s after the failure",
			nextTry: "2025-12-18T10:20:00-06:00",
		},
		"spent, at the hour's limit": {
			state: `{"status":"retry_scheduled","retry_count":5,"postponed":true,"retry_after":1766074800,"last_error_kind":"document","last_error_code":"547"}`,
			flow: func(w *world) {
				w.note(func(c *breaker.Control) { c.Poison = breaker.PoisonCount{Hour: start(), Count: 100} })
			},
			summary: "5 of 5 retries used, and it failed again: it may become a poison message, but this hour's number of them is reached; next try 2025-12-18T10:20:00-06:00",
			next:    "the recovery timer takes it up at its first tick after 2025-12-18T10:20:00-06:00",
			nextTry: "2025-12-18T10:20:00-06:00",
		},
		"processing": {
			state: `{"status":"processing"}`, summary: "the old writer took it up 6 s ago",
			next:    "the old writer may be at it; the recovery timer takes it up after 2025-12-18T10:10:00-06:00",
			nextTry: "2025-12-18T10:10:00-06:00",
		},
		"failed": {
			state:   failed(5, fault.Document, "2628"),
			summary: "failed 2025-12-18T09:05:00-06:00 after 5 of 5 retries: document 2628",
			next:    "nothing by itself: fix the cause and `document retry`, or repair by hand and `document mark-committed`",
		},
		"applied": {
			state:   `{"status":"committed","outcome":"applied","committed_at":"2025-12-17 10:30:15.123456-06:00"}`,
			summary: "committed 2025-12-17T10:30:15-06:00: its lines were written", next: "nothing: it is done",
		},
		"unchanged": {
			state:   `{"status":"committed","outcome":"unchanged"}`,
			summary: "committed: its lines held this very content already", next: "nothing: it is done",
		},
		"superseded": {
			state:   `{"status":"committed","outcome":"superseded","superseded_by":"newer"}`,
			summary: "committed: a newer result holds its lines: newer", next: "nothing: it is done",
		},
		"old writer": {
			state: `{"status":"COMMITTED"}`, summary: "committed; the outcome is not said: another program did it",
			next: "nothing: it is done",
		},
		"by hand, it says": { // what else it says is nobody's word
			state:   `{"status":"committed","outcome":"manual","marked_by":"kim","marked_why":"typed it in"}`,
			summary: "it says: committed by hand; the audit log has no entry of it",
			next:    "nothing by itself: `explain mark_without_audit` says what to do",
		},
		"unknown status": {
			state: `{"status":"Parked"}`, summary: `sql_writer.status is "Parked", which is unknown`,
			next: "nothing: it is left alone until a person corrects the status",
		},
		"another environment": {
			state: `{"status":"pending"}`, sysName: "dev",
			summary: `it belongs to the environment "dev", this app is "web"`,
			next:    "nothing here: the app of that environment takes it. If request_details.sys_name is a mistake, who wrote the document corrects it",
		},
		"no environment": {
			state: `{"status":"pending"}`, sysName: "-", summary: "it names no environment (request_details.sys_name)",
			next: "nothing: no app takes it",
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			sysName := map[string]string{"": "web", "-": ""}
			if c.sysName != "" && c.sysName != "-" {
				sysName[c.sysName] = c.sysName
			}
			w.put(documentOf(id(1), sysName[c.sysName], 1, "x", c.state))
			w.tick()
			if c.flow != nil {
				c.flow(w)
			}
			w.clock = start().Add(6 * time.Second)
			e := must(w.ops.Why(t.Context(), ops.WhyQuery{ID: id(1)}))(t)
			require.Equal(t, c.summary, e.Summary)
			require.Equal(t, c.next, e.Next)
			if c.nextTry == "" {
				require.Zero(t, e.NextTry)
			} else {
				require.Equal(t, c.nextTry, e.NextTry.Format(time.RFC3339))
			}
		})
	}
}

func TestWhyListsTheAttempts(t *testing.T) {
	w := newWorld(t)
	w.put(result(1, tooLong(), scheduled(start().Add(20*time.Minute))))
	e := must(w.ops.Why(t.Context(), ops.WhyQuery{ID: id(1)}))(t)
	require.Equal(t, []int{3, 5}, []int{e.RetriesUsed, e.Retries})
	require.Len(t, e.Attempts, 2)
	require.Equal(t, "2025-12-18T09:46:00-06:00", e.Attempts[1].At.Format(time.RFC3339))
	require.Equal(t, "2025-12-18T10:20:00-06:00", e.Attempts[1].NextTry.Format(time.RFC3339))
	require.Equal(t, []string{"document", "2628", "too long"},
		[]string{e.LastError.Kind, e.LastError.Code, e.LastError.Error})
	require.Contains(t, e.Problem, "process_output.manufacturer_name", "it cannot be written as it is now")
	require.Equal(t, "running", e.Flow)
	require.Empty(t, e.Evidence, "only of a failed document")
}

// The store says where the newest evidence of a failed document is, whatever became of its content since. Without an
// answer the rest is said.
func TestWhyAsksTheStoreForTheEvidence(t *testing.T) {
	w := newWorld(t, 1)
	w.put(result(1, tooLong(), ""))
	asked := func() string {
		e := must(w.ops.Why(t.Context(), ops.WhyQuery{ID: id(1)}))(t)
		require.NotEmpty(t, e.Summary)
		return e.Evidence
	}
	w.poison(1)
	first := asked()
	require.Regexp(t, "^web/failed/1/[^/]+/20251218T160000.000000Z-[0-9a-f]{64}$", first)
	w.evidence.Put("failed/1/"+path.Base(path.Dir(first))+"/20261218T160000.000000Z-ab/original.json", []byte("{}"))
	w.put(result(1, tooLong()+"x", "")) // made anew, and it fails again
	w.clock = w.clock.Add(24 * time.Hour)
	w.poison(1)
	second := asked()
	require.Greater(t, second, first)
	require.NotContains(t, second, "-ab", "that one is not complete")
	shown := must(w.ops.EvidenceShow(t.Context(), ops.EvidenceOfDocument{ID: id(1)}))(t)
	paths := []string{}
	for _, e := range shown.Episodes {
		paths = append(paths, e.Path)
	}
	require.Subset(t, paths, []string{first, second})
	w.put(result(1, "corrected", failed(1, fault.Document, "2628")))
	require.Equal(t, second, asked())
	w.put(result(2, "never kept", failed(1, fault.Document, "2628")))
	e := must(w.ops.Why(t.Context(), ops.WhyQuery{ID: id(2)}))(t)
	require.Empty(t, e.Evidence)
	w.ops = ops.New(
		ops.Ports{Documents: w.docs, Breaker: w.breaker, Counts: w.counts, Evidence: awayEvidence{w.evidence}},
		ops.Options{SysName: "web", Now: func() time.Time { return w.clock }})
	require.Empty(t, asked())
}

// awayEvidence is a store that lists nothing.
type awayEvidence struct{ *inmem.Evidence }

func (awayEvidence) FilesBelow(context.Context, string, string) ([]ops.EvidenceFile, string, error) {
	return nil, "", fault.New(fault.Infrastructure, "test: list", "refused", "it is away")
}

func TestWhySaysWhatKeepsASpentDocumentFromFailing(t *testing.T) {
	w := newWorld(t, 1)
	w.put(result(1, tooLong(), ""))
	for range 7 { // nothing else is written, so nothing proves that it is the cause
		w.clock = w.clock.Add(2 * time.Hour)
		w.run(id(1))
	}
	require.Equal(t, invoice.RetryScheduled, w.state(1).Status)
	e := must(w.ops.Why(t.Context(), ops.WhyQuery{ID: id(1)}))(t)
	require.Contains(t, e.Summary,
		"5 of 5 retries used, and it failed again: it becomes a poison message at its next failure, if another document was applied")
}

// The feed stops at such a document, whatever becomes of it.
func TestWhyNamesADocumentThatIsTooDeepForTheFeed(t *testing.T) {
	w := newWorld(t)
	for _, levels := range []int{62, 63} {
		nested := `"notes":` + strings.Repeat("[", levels) + strings.Repeat("]", levels) + `,"sql_writer"`
		doc := strings.Replace(result(1, "x", `{"status":"committed","outcome":"applied"}`), `"sql_writer"`, nested, 1)
		w.put(doc)
		e := must(w.ops.Why(t.Context(), ops.WhyQuery{ID: id(1)}))(t)
		require.Equal(t, levels == 63, strings.HasPrefix(e.Warning, "document.too_deep: "),
			"%d levels in one: %q", levels, e.Warning)
	}
}

func TestWhyOfAMissingDocument(t *testing.T) {
	w := newWorld(t)
	_, err := w.ops.Why(t.Context(), ops.WhyQuery{ID: "nobody"})
	require.Equal(t, ops.NotFound, refusal(err))
	for _, id := range []string{"", "a/b", string(make([]byte, 1024))} {
		_, err = w.ops.Why(t.Context(), ops.WhyQuery{ID: id})
		require.Equal(t, ops.Usage, refusal(err))
	}
}

// One id under two keys: both surfaces that take an id say so, and the diff sends neither.
func TestAnIDThatTwoDocumentsHaveIsNamed(t *testing.T) {
	w := newWorld(t, 1, 2)
	for n, request := range []string{"R1", "R2"} {
		doc := documentOf(id(1), "web", int64(n+1), "x", "")
		require.NoError(t,
			w.docs.Put(
				json.RawMessage(
					strings.Replace(doc, `"request_details":{`, `"request_details":{"id":"`+request+`",`, 1))))
	}
	_, err := w.ops.Why(t.Context(), ops.WhyQuery{ID: id(1)})
	requireRefusal(t, "conflict: id_twice: 2 documents have the id", err)
	_, err = w.ops.MarkCommitted(by(t, "ann"), ops.MarkRequest{ID: id(1), Why: "repaired"})
	requireRefusal(t, "conflict: id_twice: 2 documents have the id", err)
	_, err = w.ops.Diff(t.Context(), ops.DiffQuery{IDs: []string{id(1)}})
	requireRefusal(t, "conflict: id_twice: several documents have the id", err)
}
