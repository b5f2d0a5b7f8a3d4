package ops_test

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"sqlwriter/internal/breaker"
	"sqlwriter/internal/fault"
	"sqlwriter/internal/invoice"
	"sqlwriter/internal/ops"
	"sqlwriter/internal/run"
)

func asRequestError(err error, to **ops.RequestError) bool { return errors.As(err, to) }

// reprocessAll asks for all failed documents.
func reprocessAll() ops.ReprocessRequest {
	return ops.ReprocessRequest{All: true, By: "pat", Why: "column widened"}
}

// fill adds n failed documents that can be written now.
func (w *world) fill(n int) {
	w.t.Helper()
	for line := range int64(n) {
		w.sink.AddLines(1 + line)
		w.put(result(1+line, "ok", failed(int(line)%60, fault.Document, "2628")))
	}
}

func TestADryRunChangesNothing(t *testing.T) {
	w := newWorld(t)
	w.fill(25)
	w.put(result(100, "x", failed(30, fault.Document, "547")), result(101, "waits", ""),
		documentOf("of another environment", "dev", 102, "x", failed(1, fault.Document, "2628")))
	before := w.snapshot()
	w.audit.fails = down() // it needs none
	res, err := w.ops.Reprocess(t.Context(), ops.ReprocessRequest{All: true, DryRun: true})
	require.NoError(t, err)
	require.Equal(t, before, w.snapshot())
	require.True(t, res.DryRun)
	require.Equal(t, 26, res.Matched)
	require.Equal(t, 26, res.Left)
	require.False(t, res.AtLeast)
	require.Equal(t, []ops.Failures{
		{Status: invoice.Failed, Kind: "document", Code: "2628", Documents: 25}, {Status: invoice.Failed, Kind: "document", Code: "547", Documents: 1},
	}, res.Failures)
	require.Len(t, res.First, 20)
	require.Equal(t, id(1), res.First[0].ID, "what failed first comes first")
	require.Equal(t, "2025-12-18T09:00:00-06:00", res.First[0].FailedAt.Format(time.RFC3339), "in the deployment's zone")
	require.Empty(t, res.Run)
}

func TestAFilterMatchesErrorTimeAndIDs(t *testing.T) {
	w := newWorld(t)
	w.put(
		result(1, "x", failed(10, fault.Document, "2628")), result(2, "x", failed(20, fault.Document, "547")),
		result(3, "x", failed(30, fault.Internal, "panic")), result(4, "x", `{"status":"FAILED"}`),
		result(5, "x", `{"status":"retry_scheduled","retry_count":2,"retry_after":4000000000,"last_error_kind":"document","last_error_code":"2628"}`),
		result(6, "x", `{"status":"committed"}`), documentOf("elsewhere", "dev", 7, "x", failed(1, fault.Document, "2628")),
	)
	nine := time.Date(2025, 12, 18, 15, 0, 0, 0, time.UTC)
	for name, c := range map[string]struct {
		filter ops.Filter
		want   []int64
	}{
		"kind":       {ops.Filter{Kind: fault.Internal}, []int64{3}},
		"code":       {ops.Filter{Code: "2628"}, []int64{1}},
		"both":       {ops.Filter{Kind: fault.Internal, Code: "2628"}, nil},
		"from":       {ops.Filter{From: nine.Add(20 * time.Minute)}, []int64{2, 3, 4}},
		"to":         {ops.Filter{To: nine.Add(20 * time.Minute)}, []int64{1}},
		"between":    {ops.Filter{From: nine.Add(15 * time.Minute), To: nine.Add(25 * time.Minute)}, []int64{2}},
		"ids":        {ops.Filter{IDs: []string{id(5), id(1), id(1)}}, []int64{1, 5}},
		"ids, code":  {ops.Filter{IDs: []string{id(5), id(1), id(2)}, Code: "547"}, []int64{2}},
		"one, after": {ops.Filter{From: w.clock.Add(time.Hour)}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			res, err := w.ops.Reprocess(t.Context(), ops.ReprocessRequest{Filter: c.filter, DryRun: true})
			require.NoError(t, err)
			var found, want []string
			for _, m := range res.First {
				found = append(found, m.ID)
			}
			for _, line := range c.want {
				want = append(want, id(line))
			}
			require.Equal(t, want, found)
		})
	}
	res, err := w.ops.Reprocess(t.Context(), ops.ReprocessRequest{DryRun: true, Filter: ops.Filter{
		IDs: []string{id(1), id(5), id(6), "elsewhere", "nobody"}, Kind: fault.Document,
	}})
	require.NoError(t, err)
	require.Equal(t, []ops.NotTaken{
		{ID: id(6), Why: "it is committed"}, {ID: "elsewhere", Why: `it belongs to the environment "dev"`}, {ID: "nobody", Why: "no document has this id"},
	}, res.NotTaken)
}

func TestInvalidReprocessRequestsAreRefused(t *testing.T) {
	w := newWorld(t)
	w.fill(1)
	before := w.snapshot()
	for name, r := range map[string]ops.ReprocessRequest{
		"an empty filter":   {By: "pat", Why: "x"},
		"all with a filter": {All: true, Filter: ops.Filter{Code: "1"}, By: "pat", Why: "x"},
		"no kind":           {Filter: ops.Filter{Kind: "documents"}, By: "pat", Why: "x"},
		"from after to":     {Filter: ops.Filter{From: w.clock, To: w.clock}, By: "pat", Why: "x"},
		"nobody":            {All: true, Why: "x"},
		"no reason":         {All: true, By: "pat", Why: " "},
		"a rate below zero": {All: true, By: "pat", Why: "x", Rate: -1},
		"a limit over all":  {All: true, By: "pat", Why: "x", Limit: 10_001},
		"an empty id":       {Filter: ops.Filter{IDs: []string{""}}, By: "pat", Why: "x"},
		"an invalid id":     {Filter: ops.Filter{IDs: []string{"a/b"}}, By: "pat", Why: "x"},
		"too many ids":      {Filter: ops.Filter{IDs: strings.Split(strings.Repeat("x", 1001), "")}, By: "pat", Why: "x"},
	} {
		if name == "too many ids" {
			for i := range r.IDs {
				r.IDs[i] = id(int64(i))
			}
		}
		_, err := w.ops.Reprocess(t.Context(), r)
		require.Equal(t, ops.Usage, refusal(err), "%s: %v", name, err)
	}
	require.Equal(t, before, w.snapshot())
}

func TestReprocessAfterAFixRewritesTheMark(t *testing.T) {
	w := newWorld(t, 1)
	w.put(result(1, tooLong(), ""))
	w.poison(1)
	require.Equal(t, invoice.StatusAIError, w.status(1))
	require.Len(t, w.evidence.Files(), 3)

	// A repair of the document does not change sql_writer.
	state, err := json.Marshal(w.state(1))
	require.NoError(t, err)
	w.put(result(1, "mended", string(state)))
	w.docs.states = nil
	res, err := w.ops.Reprocess(t.Context(), reprocessAll())
	require.NoError(t, err)
	require.Equal(t, ops.Completed, res.Status)
	require.Equal(t, map[string]int{"applied": 1}, res.Counts)
	require.Zero(t, res.Left)
	require.Equal(t, "RC-AI", w.status(1))
	after := w.state(1)
	require.Equal(t, []any{invoice.Committed, "applied", 0, 1}, []any{after.Status, after.Outcome, after.RetryCount, after.ReprocessCount})
	require.Len(t, w.docs.states, 1, "failed becomes committed in one patch")

	runs, err := w.ops.RunList(t.Context(), 0)
	require.NoError(t, err)
	require.Len(t, runs, 1)
	require.Equal(t, []any{res.Run, run.Kind("reprocess"), "pat", "column widened", run.RunCompleted, map[string]int{"applied": 1}},
		[]any{runs[0].ID, runs[0].Kind, runs[0].RequestedBy, runs[0].Why, runs[0].Status, runs[0].Counts})
	require.JSONEq(t, `{"all":true}`, string(runs[0].Filter))
	audits, err := w.ops.Audits(t.Context(), ops.AuditQuery{})
	require.NoError(t, err)
	require.Len(t, audits, 1)
	require.Equal(t, []string{"reprocess", "pat", "column widened", res.Run}, []string{audits[0].Action, audits[0].By, audits[0].Why, audits[0].Subject})
}

func TestASecondPoisoningKeepsItsOwnEvidence(t *testing.T) {
	w := newWorld(t, 1)
	w.put(result(1, tooLong(), ""))
	w.poison(1)
	first := w.evidence.Files()
	e, err := w.ops.Why(t.Context(), id(1))
	require.NoError(t, err)
	require.Contains(t, first, strings.TrimPrefix(e.Evidence, "web/")+"/error.json", "why names the folder that there is")

	w.docs.states = nil
	res, err := w.ops.Reprocess(t.Context(), reprocessAll()) // the cause is not fixed
	require.NoError(t, err)
	require.Equal(t, map[string]int{"retry_scheduled": 1}, res.Counts)
	require.Equal(t, []any{invoice.RetryScheduled, 1, 1}, []any{w.state(1).Status, w.state(1).RetryCount, w.state(1).ReprocessCount}, "its budget starts anew")
	w.poison(1)
	second := w.evidence.Files()
	require.Len(t, second, 6)
	for name, content := range first {
		require.Equal(t, content, second[name])
	}
	e, err = w.ops.Why(t.Context(), id(1))
	require.NoError(t, err)
	require.Contains(t, second, strings.TrimPrefix(e.Evidence, "web/")+"/error.json")
	require.NotContains(t, first, strings.TrimPrefix(e.Evidence, "web/")+"/error.json")
	for _, r := range w.docs.states {
		if r.id == id(1) {
			require.NotEqual(t, invoice.Pending, r.state.Status, "it never passes through pending")
		}
	}
}

func TestTheEvidenceOfAnUnreadableDocumentNamesTheRun(t *testing.T) {
	w := newWorld(t)
	w.put(strings.Replace(result(1, "x", failed(1, fault.Document, "validation.required")), `"IVCE_DTL_UID":1`, `"IVCE_DTL_UID":"none"`, 1))
	res, err := w.ops.Reprocess(t.Context(), reprocessAll())
	require.NoError(t, err)
	require.Equal(t, map[string]int{"retry_scheduled": 1}, res.Counts)
	require.Equal(t, ops.CompletedWithFailures, res.Status)
	w.clock = w.clock.Add(2 * time.Minute)
	w.applyOther()
	res, err = w.ops.Reprocess(t.Context(), ops.ReprocessRequest{Filter: ops.Filter{IDs: []string{id(1)}}, By: "pat", Why: "x"})
	require.NoError(t, err)
	require.Equal(t, map[string]int{"failed": 1}, res.Counts, "others got through after the first failure")
	named := false
	for name, content := range w.evidence.Files() {
		named = named || (strings.HasSuffix(name, "error.json") && strings.Contains(string(content), res.Run))
	}
	require.True(t, named)
}

func TestReprocessIsRefusedWithoutAnAuditRow(t *testing.T) {
	w := newWorld(t)
	w.fill(3)
	before := w.snapshot()
	w.audit.fails = down()
	_, err := w.ops.Reprocess(t.Context(), reprocessAll())
	require.True(t, fault.IsDependency(err), "%v", err)
	require.ErrorContains(t, err, "nothing was done, because no audit row can be written")
	require.Equal(t, "refused", fault.CodeOf(err))
	after := w.snapshot()
	require.Equal(t, before, after)
	require.Zero(t, w.sink.applies)
}

func TestBatchesAreBoundedAndTakeNoMoreThanTheLimit(t *testing.T) {
	w := newWorld(t)
	w.fill(250)
	r := reprocessAll()
	r.Limit = 230
	res, err := w.ops.Reprocess(t.Context(), r)
	require.NoError(t, err)
	require.Equal(t, 230, res.Matched)
	require.True(t, res.AtLeast)
	require.Equal(t, map[string]int{"applied": 230}, res.Counts)
	require.Equal(t, 100, w.sink.largest)
	require.Empty(t, w.waits)
	res, err = w.ops.Reprocess(t.Context(), r)
	require.NoError(t, err)
	require.Equal(t, map[string]int{"applied": 20}, res.Counts, "asked for again it goes on with what is left")
	res, err = w.ops.Reprocess(t.Context(), r)
	require.NoError(t, err)
	require.Equal(t, []any{0, "", ops.Completed}, []any{res.Matched, res.Run, res.Status}, "nothing to do is no run")
}

func TestTheRateIsHeld(t *testing.T) {
	w := newWorld(t)
	w.fill(50)
	r := reprocessAll()
	r.Rate = 60
	res, err := w.ops.Reprocess(t.Context(), r)
	require.NoError(t, err)
	require.Equal(t, map[string]int{"applied": 50}, res.Counts)
	require.Equal(t, 10, w.sink.largest, "ten seconds' worth at a time")
	require.Equal(t, []time.Duration{10 * time.Second, 10 * time.Second, 10 * time.Second, 10 * time.Second}, w.waits)
}

func TestACancelEndsTheRunAfterItsBatch(t *testing.T) {
	w := newWorld(t)
	w.fill(250)
	w.audit.progressed = func(int) {
		runs, err := w.store.ListRuns(t.Context(), 1)
		require.NoError(t, err)
		res, err := w.ops.RunCancel(t.Context(), ops.CancelRequest{Run: runs[0].ID, By: "kim", Why: "wrong filter"})
		require.NoError(t, err)
		require.Equal(t, run.RunRunning, res.Status)
	}
	res, err := w.ops.Reprocess(t.Context(), reprocessAll())
	require.NoError(t, err)
	require.Equal(t, ops.Cancelled, res.Status)
	require.Equal(t, map[string]int{"applied": 100}, res.Counts)
	require.Equal(t, 150, res.Left)
	require.Equal(t, []string{"cancel", "kim", res.Run}, []string{w.audits()[0].Action, w.audits()[0].By, w.audits()[0].Subject})
	runs, err := w.ops.RunList(t.Context(), 1)
	require.NoError(t, err)
	require.Equal(t, run.RunCancelled, runs[0].Status)
	_, err = w.ops.RunCancel(t.Context(), ops.CancelRequest{Run: res.Run, By: "kim", Why: "again"})
	require.Equal(t, ops.NotFound, refusal(err))
}

func TestARunStopsBeforeItsDeadline(t *testing.T) {
	w := newWorld(t)
	w.fill(50)
	r := reprocessAll()
	r.Rate = 60 // ten every ten seconds
	res, err := w.ops.Reprocess(until{t.Context(), w.clock.Add(55 * time.Second)}, r)
	require.NoError(t, err)
	require.Equal(t, ops.Stopped, res.Status)
	require.Contains(t, res.Reason, "ask again")
	require.Equal(t, map[string]int{"applied": 30}, res.Counts, "at 0, 10 and 20 s; at 30 s there were 25 left")
	require.Equal(t, 20, res.Left)
	res, err = w.ops.Reprocess(t.Context(), r)
	require.NoError(t, err)
	require.Equal(t, map[string]int{"applied": 20}, res.Counts)
}

func TestACallerMayDisconnect(t *testing.T) {
	w := newWorld(t)
	w.fill(150)
	ctx, cancel := context.WithCancel(t.Context())
	w.sink.applied = cancel
	res, err := w.ops.Reprocess(ctx, reprocessAll())
	require.NoError(t, err)
	require.Equal(t, []any{ops.Stopped, "stopped by the caller", 50, ""}, []any{res.Status, res.Reason, res.Left, res.Note})
	require.Equal(t, 1, w.audit.progress, "what was done is recorded all the same")
	runs, err := w.ops.RunList(t.Context(), 1)
	require.NoError(t, err)
	require.Equal(t, run.RunStopped, runs[0].Status, "its end is recorded all the same")
}

func TestAPauseStopsARunAndCountsNothing(t *testing.T) {
	w := newWorld(t)
	w.fill(3)
	require.NoError(t, w.breaker.Pause(t.Context(), "kim", "maintenance"))
	res, err := w.ops.Reprocess(t.Context(), reprocessAll())
	require.NoError(t, err)
	require.Equal(t, ops.Stopped, res.Status)
	require.Contains(t, res.Reason, "paused by kim since 2025-12-18T16:00:00Z: maintenance")
	require.Equal(t, []any{0, 3}, []any{len(res.Counts), res.Left})
	require.Empty(t, w.docs.states)
	require.Zero(t, w.sink.applies)
	runs, err := w.ops.RunList(t.Context(), 1)
	require.NoError(t, err, "the list of runs can be read during a pause")
	require.Equal(t, run.RunStopped, runs[0].Status)
}

func TestTheAuditLogIsNotUsedWhileTheFlowIsStopped(t *testing.T) {
	for _, kind := range []fault.Kind{fault.Infrastructure, fault.Throttled, fault.Quota} {
		w := newWorld(t)
		w.fill(3)
		w.open(kind, "x1")
		for _, ask := range []func() error{
			func() error { _, err := w.ops.Reprocess(t.Context(), reprocessAll()); return err },
			func() error { _, err := w.ops.RunList(t.Context(), 1); return err },
			func() error {
				_, err := w.ops.RunCancel(t.Context(), ops.CancelRequest{Run: "r", By: "b", Why: "w"})
				return err
			},
			func() error {
				_, err := w.ops.MarkCommitted(t.Context(), ops.MarkRequest{ID: id(1), By: "b", Why: "w"})
				return err
			},
		} {
			err := ask()
			require.True(t, breaker.IsRefusal(err), "%v", err)
			require.True(t, fault.IsDependency(err))
		}
		require.Zero(t, w.audit.calls)
		require.Zero(t, w.sink.heartbeats)
		require.Empty(t, w.docs.states)

		w.clock = w.clock.Add(2 * time.Minute)
		_, err := w.ops.RunList(t.Context(), 1)
		require.NoError(t, err, "a request sends the due probe")
		require.Equal(t, 1, w.sink.heartbeats)
		res, err := w.ops.Reprocess(t.Context(), reprocessAll())
		require.NoError(t, err)
		require.Equal(t, map[string]int{"applied": 3}, res.Counts)
		require.False(t, w.flow().Stopped())
	}
}

func TestAnOutageInTheMiddleStopsTheRun(t *testing.T) {
	w := newWorld(t)
	w.fill(150)
	w.audit.progressed = func(int) { w.sink.fails = fault.New(fault.Quota, "test: apply", "9002", "the log is full") }
	res, err := w.ops.Reprocess(t.Context(), reprocessAll())
	require.NoError(t, err)
	require.Equal(t, ops.Stopped, res.Status)
	require.Contains(t, res.Reason, "quota 9002")
	require.Equal(t, map[string]int{"applied": 100}, res.Counts)
	require.Equal(t, 50, res.Left)
	require.Empty(t, res.Note, "the end of what was begun is tried whatever the breaker says")
	left := 0
	for line := range int64(150) {
		if s := w.state(1 + line); s.Status == invoice.Failed {
			left++
			require.Zero(t, s.ReprocessCount)
		}
	}
	require.Equal(t, 50, left)

	runs, err := w.store.ListRuns(t.Context(), 1)
	require.NoError(t, err)
	require.Equal(t, []any{ops.Stopped, map[string]int{"applied": 100}}, []any{runs[0].Status, runs[0].Counts})
}

func TestARunWhoseEndCannotBeRecordedIsEndedByHand(t *testing.T) {
	w := newWorld(t)
	w.fill(1)
	w.audit.fails, w.audit.failsFor = down(), "end"
	res, err := w.ops.Reprocess(t.Context(), reprocessAll())
	require.NoError(t, err)
	require.Contains(t, res.Note, "cancel --gone")
	w.audit.fails = nil
	c, err := w.ops.RunCancel(t.Context(), ops.CancelRequest{Run: res.Run, By: "kim", Why: "its process is gone", Gone: true})
	require.NoError(t, err)
	require.Equal(t, run.RunCancelled, c.Status)
	runs, err := w.ops.RunList(t.Context(), 1)
	require.NoError(t, err)
	require.Equal(t, run.RunCancelled, runs[0].Status)
}

func TestARunWhoseEntryWasEndedEnds(t *testing.T) {
	w := newWorld(t)
	w.fill(250)
	w.audit.progressed = func(int) {
		runs, err := w.store.ListRuns(t.Context(), 1)
		require.NoError(t, err)
		require.NoError(t, w.audit.AuditLog.End(t.Context(), runs[0].ID, ops.Cancelled, nil))
	}
	res, err := w.ops.Reprocess(t.Context(), reprocessAll())
	require.NoError(t, err)
	require.Equal(t, []any{ops.Cancelled, 150}, []any{res.Status, res.Left})
}

func TestProgressThatCannotBeRecordedStops(t *testing.T) {
	w := newWorld(t)
	w.fill(250)
	w.audit.fails, w.audit.failsFor = down(), "progress"
	res, err := w.ops.Reprocess(t.Context(), reprocessAll())
	require.NoError(t, err)
	require.Equal(t, []any{ops.Stopped, 150}, []any{res.Status, res.Left}, "an operator cannot cancel it")
	require.Contains(t, res.Reason, "progress")
}

func TestOnlyWhatStillMatchesIsTaken(t *testing.T) {
	w := newWorld(t)
	w.fill(120)
	w.audit.progressed = func(int) { // between the batches two of the others change, and one goes
		w.put(result(60, "ok", `{"status":"committed"}`), result(120, "ok", failed(59, fault.Document, "547")))
	}
	r := ops.ReprocessRequest{Filter: ops.Filter{Code: "2628"}, By: "pat", Why: "x"}
	res, err := w.ops.Reprocess(t.Context(), r)
	require.NoError(t, err)
	require.Equal(t, map[string]int{"applied": 118, "changed": 2}, res.Counts)
	require.Equal(t, ops.Completed, res.Status, "what changed meanwhile is no failure")
	require.Equal(t, "547", w.state(120).LastErrorCode)
}

func TestAShadowReprocessesNothing(t *testing.T) {
	w := newWorld(t)
	w.fill(1)
	shadow := ops.New(ops.Ports{Documents: w.docs, Backlog: w.docs, Breaker: w.breaker, Stores: w.stores}, ops.Options{
		SysName: "web", ReadOnly: "MODE=shadow: nothing is written", Now: func() time.Time { return w.clock },
	})
	_, err := shadow.Reprocess(t.Context(), reprocessAll())
	require.Equal(t, ops.Conflict, refusal(err))
	_, err = shadow.MarkCommitted(t.Context(), ops.MarkRequest{ID: id(1), By: "b", Why: "w"})
	require.Equal(t, ops.Conflict, refusal(err))
	res, err := shadow.Reprocess(t.Context(), ops.ReprocessRequest{All: true, DryRun: true})
	require.NoError(t, err)
	require.Equal(t, 1, res.Matched)
	require.Zero(t, w.audit.calls)
}

func TestANamedRetryIsTakenBeforeItIsDue(t *testing.T) {
	w := newWorld(t, 1)
	w.put(result(1, "ok", `{"status":"retry_scheduled","retry_count":2,"retry_after":4000000000,"last_error_kind":"document","last_error_code":"2628"}`))
	res, err := w.ops.Reprocess(t.Context(), reprocessAll())
	require.NoError(t, err)
	require.Zero(t, res.Matched, "all that failed: it has not yet")
	res, err = w.ops.Reprocess(t.Context(), ops.ReprocessRequest{Filter: ops.Filter{IDs: []string{id(1)}}, By: "pat", Why: "x"})
	require.NoError(t, err)
	require.Equal(t, map[string]int{"applied": 1}, res.Counts)
	require.False(t, slices.ContainsFunc(w.docs.states, func(r record) bool { return r.state.Status == invoice.Pending }))
}
