package ops_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"sqlwriter/internal/breaker"
	"sqlwriter/internal/commit"
	"sqlwriter/internal/fault"
	"sqlwriter/internal/invoice"
	"sqlwriter/internal/ops"
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
			next: "the change feed brings it; what it has not brought after 10 min, or twice its lag, the recovery timer takes up",
		},
		"no sql_writer": {
			state: `null`, summary: "it was never offered: it has no sql_writer.status",
			next: "nothing: it is left alone until a person sets sql_writer.status to pending",
		},
		"status null": {
			state: `{"status":null,"retry_count":2}`, flow: func(w *world) { w.pausedSince(3 * time.Minute) }, summary: "it was never offered: it has no sql_writer.status",
			next: "nothing: it is left alone until a person sets sql_writer.status to pending",
		},
		"reset by hand": {
			state:   `{"status":"pending","retry_count":5,"failed_at":"2025-12-18 09:00:00.000000-06:00"}`,
			summary: "pending, reset by hand: its retries start anew; waiting for 6 s",
			next:    "the change feed brings it; what it has not brought after 10 min, or twice its lag, the recovery timer takes up",
		},
		"not due": {
			state: scheduled(ten.Add(20 * time.Minute)), summary: "3 of 5 retries used; next try 10:20",
			next: "the recovery timer takes it up at its first tick after 10:20", nextTry: "2025-12-18T10:20:00-06:00",
		},
		"not due today": {
			state: scheduled(ten.Add(20 * time.Hour)), summary: "3 of 5 retries used; next try 2025-12-19 06:00",
			next: "the recovery timer takes it up at its first tick after 2025-12-19 06:00", nextTry: "2025-12-19T06:00:00-06:00",
		},
		"due": {
			state: scheduled(ten.Add(-3 * time.Minute)), summary: "3 of 5 retries used; due since 09:57",
			next: "the recovery timer takes it up at its next tick",
		},
		"due, no time": {
			state: `{"status":"Retry_Scheduled","retry_count":1}`, summary: "1 of 5 retries used; due", next: "the recovery timer takes it up at its next tick",
		},
		"due, in milliseconds": {
			state: scheduled(ten.Add(20_000 * time.Hour)), summary: "3 of 5 retries used; due since 10:00", next: "the recovery timer takes it up at its next tick",
		},
		"in milliseconds, paused": {
			state: scheduled(ten.Add(20_000 * time.Hour)), flow: func(w *world) { w.pausedSince(3 * time.Minute) },
			summary: "3 of 5 retries used; 0 s waiting because the flow is paused, not counted; next try after a resume",
			next:    "the flow is paused by kim since 2025-12-18T15:57:00Z: maintenance",
		},
		"postponed": {
			state:   `{"status":"retry_scheduled","retry_count":5,"retry_after":1766074800,"postponed":true}`,
			summary: "5 of 5 retries used; postponed: nothing was applied since it failed, so that failure is not counted yet; next try 10:20",
			next:    "the recovery timer takes it up at its first tick after 10:20, or when another document was applied at least 60 s after the failure",
			nextTry: "2025-12-18T10:20:00-06:00",
		},
		"due, flow stopped": {
			state: scheduled(ten.Add(-3 * time.Minute)), flow: func(w *world) { w.openSince(fault.Infrastructure, "refused", 41*time.Minute, 20*time.Minute) },
			summary: "3 of 5 retries used; 3 min waiting because the flow is stopped, not counted; next try 10:20",
			next:    "the flow is stopped since 2025-12-18T15:19:00Z (infrastructure refused: set by the test), next probe in 19m54s: when a probe succeeds, it is taken up",
			nextTry: "2025-12-18T10:20:00-06:00",
		},
		"long due, flow stopped": {
			state: scheduled(ten.Add(-3 * time.Hour)), flow: func(w *world) { w.openSince(fault.Infrastructure, "refused", 41*time.Minute, 20*time.Minute) },
			summary: "3 of 5 retries used; 41 min waiting because the flow is stopped, not counted; next try 10:20",
			next:    "the flow is stopped since 2025-12-18T15:19:00Z (infrastructure refused: set by the test), next probe in 19m54s: when a probe succeeds, it is taken up",
			nextTry: "2025-12-18T10:20:00-06:00",
		},
		"not due, flow stopped for longer": {
			state: scheduled(ten.Add(5 * time.Minute)), flow: func(w *world) { w.openSince(fault.Quota, "9002", time.Minute, time.Hour) },
			summary: "3 of 5 retries used; next try 11:00", next: "the recovery timer takes it up at its first tick after 11:00",
			nextTry: "2025-12-18T11:00:00-06:00",
		},
		"due, paused": {
			state: scheduled(ten.Add(-30 * time.Minute)), flow: func(w *world) { w.pausedSince(3 * time.Minute) },
			summary: "3 of 5 retries used; 3 min waiting because the flow is paused, not counted; next try after a resume",
			next:    "the flow is paused by kim since 2025-12-18T15:57:00Z: maintenance",
		},
		"pending, flow stopped": {
			state: `{"status":"pending"}`, flow: func(w *world) { w.openSince(fault.Throttled, "40501", time.Hour, time.Minute) },
			summary: "pending; 6 s waiting because the flow is stopped, not counted; next try 10:01",
			next:    "the flow is stopped since 2025-12-18T15:00:00Z (throttled 40501: set by the test), next probe in 54s: when a probe succeeds, it is taken up", nextTry: "2025-12-18T10:01:00-06:00",
		},
		"pending, ramping up": {
			state: `{"status":"pending"}`, flow: func(w *world) {
				w.set(breaker.State{Name: breaker.HalfOpen, Limit: 5, Kind: fault.Infrastructure, Code: "refused", Reason: "x", Since: start()})
			},
			summary: "pending; waiting for 6 s",
			next:    "the flow is ramping up, at most 5 in one request; it was stopped since 2025-12-18T16:00:00Z (infrastructure refused: x): it is taken up as more may pass",
		},
		"due, ramping up": {
			state: scheduled(ten.Add(-3 * time.Minute)), flow: func(w *world) { w.set(breaker.State{Name: breaker.HalfOpen, Limit: 5}) },
			summary: "3 of 5 retries used; due since 09:57",
			next:    "the recovery timer takes it up at its next tick; the flow is ramping up, at most 5 in one request",
		},
		"put off": {
			state:   `{"status":"retry_scheduled","retry_count":2,"retry_after":1766074800,"postponed":true,"last_error_kind":"contention","last_error_code":"1222"}`,
			summary: "2 of 5 retries used; put off: it was tried and not judged (contention 1222), so nothing was counted; next try 10:20",
			next:    "the recovery timer takes it up at its first tick after 10:20, or when another document was applied at least 60 s after the failure",
			nextTry: "2025-12-18T10:20:00-06:00",
		},
		"spent": {
			state:   `{"status":"retry_scheduled","retry_count":6,"retry_after":1766074800,"last_error_kind":"document","last_error_code":"547"}`,
			summary: "5 of 5 retries used, and it failed again: it becomes a poison message at its next failure, once its evidence can be kept; next try 10:20",
			next:    "the recovery timer takes it up at its first tick after 10:20", nextTry: "2025-12-18T10:20:00-06:00",
		},
		"spent, at the hour's limit": {
			state: `{"status":"retry_scheduled","retry_count":6,"retry_after":1766074800,"last_error_kind":"document","last_error_code":"547"}`,
			flow: func(w *world) {
				w.note(func(c *breaker.Control) { c.Poison = breaker.PoisonCount{Hour: start(), Count: 100} })
			},
			summary: "5 of 5 retries used, and it failed again: it would be a poison message, but this hour's number of them is reached; next try 10:20",
			next:    "the recovery timer takes it up at its first tick after 10:20", nextTry: "2025-12-18T10:20:00-06:00",
		},
		"processing": {
			state: `{"status":"processing"}`, summary: "the old writer took it up 6 s ago",
			next: "the old writer may be at it; after 10:10 the recovery timer takes it up", nextTry: "2025-12-18T10:10:00-06:00",
		},
		"failed": {
			state: failed(5, fault.Document, "2628"), summary: "failed 09:05 after 5 of 5 retries: document 2628",
			next: "nothing by itself: fix the cause and `run start replay`, or repair by hand and `mark-committed`",
		},
		"applied": {
			state:   `{"status":"committed","outcome":"applied","committed_at":"2025-12-17 10:30:15.123456-06:00"}`,
			summary: "committed 2025-12-17 10:30: its lines were written", next: "nothing: it is done",
		},
		"unchanged":  {state: `{"status":"committed","outcome":"unchanged"}`, summary: "committed: its lines held this very content already", next: "nothing: it is done"},
		"superseded": {state: `{"status":"committed","outcome":"superseded","superseded_by":"newer"}`, summary: "committed: a newer result holds its lines: newer", next: "nothing: it is done"},
		"old writer": {state: `{"status":"COMMITTED"}`, summary: "committed; the outcome is not said: another program did it", next: "nothing: it is done"},
		"by hand": {
			state:   `{"status":"committed","outcome":"manual","marked_by":"kim","marked_why":"typed it in"}`,
			summary: "committed by hand by kim: typed it in", next: "nothing: it is done",
		},
		"unknown status": {
			state: `{"status":"Parked"}`, summary: `sql_writer.status is "Parked", which is unknown`,
			next: "nothing: it is left alone until a person corrects the status",
		},
		"another environment": {
			state: `{"status":"pending"}`, sysName: "dev", summary: `it belongs to the environment "dev", this app is "web"`, next: "nothing here: ask the app of that environment",
		},
		"no environment": {
			state: `{"status":"pending"}`, sysName: "-", summary: "it names no environment (request_details.sys_name)", next: "nothing: no app takes it",
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			sysName := map[string]string{"": "web", "-": ""}
			if c.sysName != "" && c.sysName != "-" {
				sysName[c.sysName] = c.sysName
			}
			w.put(documentOf(id(1), sysName[c.sysName], 1, "x", c.state))
			if c.flow != nil {
				c.flow(w)
			}
			w.clock = start().Add(6 * time.Second)
			e, err := w.ops.Why(t.Context(), id(1))
			require.NoError(t, err)
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
	e, err := w.ops.Why(t.Context(), id(1))
	require.NoError(t, err)
	require.Equal(t, []int{3, 5}, []int{e.RetriesUsed, e.Retries})
	require.Len(t, e.Attempts, 2)
	require.Equal(t, "2025-12-18T09:46:00-06:00", e.Attempts[1].At.Format(time.RFC3339))
	require.Equal(t, "2025-12-18T10:20:00-06:00", e.Attempts[1].NextTry.Format(time.RFC3339))
	require.Equal(t, []string{"document", "2628", "too long"}, []string{e.LastError.Kind, e.LastError.Code, e.LastError.Error})
	require.Contains(t, e.Problem, "process_output.manufacturer_name", "it cannot be written as it is now")
	require.Equal(t, "running", e.Flow)
	require.Empty(t, e.Evidence, "only of a failed document")
}

func TestWhySaysWhatKeepsASpentDocumentFromFailing(t *testing.T) {
	w := newWorld(t, 1)
	w.put(result(1, tooLong(), ""))
	for range 7 { // nothing else is written, so no failure counts
		w.clock = w.clock.Add(2 * time.Hour)
		w.run(id(1))
	}
	require.Equal(t, invoice.RetryScheduled, w.state(1).Status)
	e, err := w.ops.Why(t.Context(), id(1))
	require.NoError(t, err)
	require.Contains(t, e.Summary, "1 of 5 retries used; postponed: nothing was applied since it failed")
}

// The feed stops at such a document, whatever becomes of it.
func TestWhyNamesADocumentThatIsTooDeepForTheFeed(t *testing.T) {
	w := newWorld(t)
	for _, levels := range []int{62, 63} {
		nested := `"notes":` + strings.Repeat("[", levels) + strings.Repeat("]", levels) + `,"sql_writer"`
		doc := strings.Replace(result(1, "x", `{"status":"committed","outcome":"applied"}`), `"sql_writer"`, nested, 1)
		w.put(doc)
		e, err := w.ops.Why(t.Context(), id(1))
		require.NoError(t, err)
		require.Equal(t, levels == 63, strings.HasPrefix(e.Warning, "document.too_deep: "), "%d levels in one: %q", levels, e.Warning)
	}
}

func TestWhyOfAMissingDocument(t *testing.T) {
	w := newWorld(t)
	_, err := w.ops.Why(t.Context(), "nobody")
	require.Equal(t, ops.NotFound, refusal(err))
	for _, id := range []string{"", "a/b", string(make([]byte, 1024))} {
		_, err = w.ops.Why(t.Context(), id)
		require.Equal(t, ops.Usage, refusal(err))
	}
}

func TestStatus(t *testing.T) {
	w := newWorld(t)
	w.put(
		result(1, "x", `{"status":"pending"}`), result(2, "x", `null`),
		result(3, "x", scheduled(start().Add(time.Hour))), result(4, "x", scheduled(start().Add(-time.Hour))),
		result(5, "x", failed(1, fault.Document, "547")), result(6, "x", failed(2, fault.Document, "547")), result(7, "x", failed(2, fault.Internal, "panic")),
		result(8, "x", `{"status":"processing"}`), result(9, "x", `{"status":"committed"}`),
		documentOf("elsewhere", "dev", 9, "x", `{"status":"pending"}`),
	)
	w.note(func(c *breaker.Control) {
		c.Feed, c.Poison, c.AppVersion = breaker.FeedLag{Seconds: 7, At: start()}, breaker.PoisonCount{Hour: start(), Count: 3}, "v0"
		c.Missed = breaker.Missed{Documents: 26, Oldest: start().Add(-time.Hour), At: start(), Sample: "x", Code: invoice.CodeTooDeep}
	})
	w.clock = start().Add(20 * time.Second)
	s, err := w.ops.Status(t.Context())
	require.NoError(t, err)
	require.Equal(t, map[invoice.Status]ops.Count{
		invoice.Pending: {Documents: 1}, invoice.RetryScheduled: {Documents: 2}, invoice.Processing: {Documents: 1}, invoice.Failed: {Documents: 3},
	}, s.Counts.Depth)
	require.Equal(t, 1, s.Counts.Due)
	require.EqualValues(t, 20, s.Counts.Oldest.AgeSeconds)
	var groups []string
	for _, g := range s.Counts.Groups {
		groups = append(groups, fmt.Sprint(g.Status, " ", g.Kind, " ", g.Code, " ", g.Documents.Documents))
	}
	require.Equal(t, []string{"failed document 547 2", "retry_scheduled document 2628 2", "failed internal panic 1"}, groups)
	require.EqualValues(t, 7, s.Feed.LagSeconds)
	require.Equal(t, ops.FeedMissed{
		Documents: 26, Oldest: start().Add(-time.Hour).In(s.At.Location()), At: start().In(s.At.Location()), Sample: "x", Code: "document.too_deep",
	}, *s.FeedMissed)
	require.Equal(t, []any{"v0", "v1", breaker.Running}, []any{s.AppVersion, s.Version, s.Flow.State})
	require.Equal(t, "2025-12-18T10:00:20-06:00", s.At.Format(time.RFC3339))

	w.clock = w.clock.Add(time.Hour)
	w.open(fault.Quota, "9002")
	s, err = w.ops.Status(t.Context())
	require.NoError(t, err)
	require.Equal(t, []any{breaker.StoppedFlow, fault.Quota, "9002", "b", "2025-12-18T11:01:20-06:00"},
		[]any{s.Flow.State, s.Flow.Kind, s.Flow.Code, s.Flow.HeldBy, s.Flow.NextProbe.Format(time.RFC3339)})
	require.Zero(t, w.audit.calls, "SQL is not asked")
	require.Zero(t, w.sink.applies)
}

func TestStatusReportsMassFailuresAndDeferredDocuments(t *testing.T) {
	w := newWorld(t)
	for line := range int64(25) {
		w.put(result(1+line, "x", ""))
	}
	var ids []string
	for line := range int64(25) {
		ids = append(ids, id(1+line))
	}
	w.run(ids...)
	w.put(result(30, "x", `{"status":"retry_scheduled","retry_count":1,"retry_after":1766074800,"postponed":true,"last_error_kind":"document"}`),
		result(31, "x", `{"status":"retry_scheduled","retry_count":0,"retry_after":1766074800,"last_error_kind":"contention"}`))
	s, err := w.ops.Status(t.Context())
	require.NoError(t, err)
	require.Equal(t, breaker.Running, s.Flow.State)
	require.Len(t, s.MassFailures, 1)
	require.Equal(t, []any{"missing_detail_row", 25}, []any{s.MassFailures[0].Code, s.MassFailures[0].Documents})
	require.Equal(t, []int{1, 1}, []int{s.Counts.PutOff, s.Counts.Postponed})

	w.clock = w.clock.Add(2 * time.Hour)
	s, err = w.ops.Status(t.Context())
	require.NoError(t, err)
	require.Empty(t, s.MassFailures, "nothing new fails so any more")
}

// floodedBacklog has many failed documents and one pending one, in pages of 1,000.
type floodedBacklog struct {
	commit.Backlog
	documents int
}

func (f floodedBacklog) PendingDocs(_ context.Context, _ string, statuses []invoice.Status, from, _ int64, page func([]commit.PendingDoc) (bool, error)) error {
	if from != 0 { // all of them are old
		return nil
	}
	if statuses[0] != invoice.Failed {
		_, err := page([]commit.PendingDoc{{ID: "waits", TS: 1, Status: invoice.Pending}})
		return err
	}
	for done := 0; done < f.documents; done += 1000 {
		rows := make([]commit.PendingDoc, min(1000, f.documents-done))
		for i := range rows {
			rows[i] = commit.PendingDoc{ID: fmt.Sprint(done + i), TS: 1, Status: invoice.Failed, Kind: "document", Code: "547"}
		}
		if more, err := page(rows); err != nil || !more {
			return err
		}
	}
	return nil
}

func TestCountingStopsAtItsLimit(t *testing.T) {
	w := newWorld(t)
	of := func(n int) *ops.Ops {
		return ops.New(ops.Ports{Documents: w.docs, Backlog: floodedBacklog{documents: n}, Breaker: w.breaker}, ops.Options{SysName: "web", Now: func() time.Time { return w.clock }})
	}
	for n, want := range map[int]ops.Count{5000: {Documents: 5000}, 5001: {Documents: 5000, AtLeast: true}} {
		s, err := of(n).Status(t.Context())
		require.NoError(t, err)
		require.Equal(t, want, s.Counts.Depth[invoice.Failed])
		require.Equal(t, ops.Count{Documents: 1}, s.Counts.Depth[invoice.Pending], "many failed ones do not hide it")
	}
}

// slowBacklog answers when its time is over.
type slowBacklog struct{ commit.Backlog }

func (slowBacklog) PendingDocs(ctx context.Context, _ string, statuses []invoice.Status, _, _ int64, page func([]commit.PendingDoc) (bool, error)) error {
	if statuses[0] != invoice.Failed {
		if _, err := page([]commit.PendingDoc{{ID: "waits", TS: 1, Status: invoice.Pending}}); err != nil {
			return err
		}
	}
	<-ctx.Done()
	return fault.Wrap(fault.Infrastructure, "test: waiting", "timeout", "no answer", ctx.Err())
}

func TestCountingStopsAtItsDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		o := ops.New(ops.Ports{Documents: w.docs, Backlog: slowBacklog{}, Breaker: w.breaker}, ops.Options{SysName: "web", Now: func() time.Time { return w.clock }})
		begin := time.Now()
		s, err := o.Status(t.Context())
		require.NoError(t, err)
		require.Equal(t, 20*time.Second, time.Since(begin))
		require.Equal(t, []ops.Count{{Documents: 1, AtLeast: true}, {AtLeast: true}}, []ops.Count{s.Counts.Depth[invoice.Pending], s.Counts.Depth[invoice.Failed]})
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err = o.Status(ctx)
		require.True(t, fault.IsDependency(err), "the caller's own time is over")
	})
}
