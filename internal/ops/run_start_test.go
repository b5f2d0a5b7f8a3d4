package ops_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"sqlwriter/internal/breaker"
	"sqlwriter/internal/fault"
	"sqlwriter/internal/ops"
	"sqlwriter/internal/reconcile"
	"sqlwriter/internal/run"
)

func TestInvalidRunRequestsAreRefused(t *testing.T) {
	r := newRuns(t)
	r.fill(1)
	many := make([]string, 10_001)
	for i := range many {
		many[i] = id(int64(i))
	}
	with := func(change func(*ops.StartRequest)) ops.StartRequest {
		request := replayAll()
		change(&request)
		return request
	}
	for name, c := range map[string]struct {
		request ops.StartRequest
		says    string
	}{
		"no kind": {
			with(func(r *ops.StartRequest) { r.Kind = "census" }),
			`kind: expected drain, replay, reindex or reapply, found "census"`,
		},
		"too many ids": {
			with(func(r *ops.StartRequest) { r.IDs, r.All = many, false }), "ids: expected at most 10000, found 10001",
		},
		"ids and a time": {
			with(func(r *ops.StartRequest) { r.IDs, r.Since, r.All = []string{"a"}, start(), false }),
			"ids: expected one of ids, since, run, findings and all, found 2",
		},
		"an invalid id": {
			with(func(r *ops.StartRequest) { r.IDs, r.All = []string{"a/b"}, false }),
			"id: expected the id of a document",
		},
		"an empty id": {
			with(func(r *ops.StartRequest) { r.IDs, r.All = []string{""}, false }),
			"id: expected the id of a document, found nothing",
		},
		"a rate below zero": {
			with(func(r *ops.StartRequest) { r.Rate = -1 }), "rate: expected 0 to 100000 documents a minute, found -1",
		},
		"a limit too large": {
			with(func(r *ops.StartRequest) { r.Limit = 100_000_001 }),
			"limit: expected 0 to 100000000, found 100000001",
		},
		"an empty filter": {
			with(func(r *ops.StartRequest) { r.All = false }),
			"all: expected a filter, or that all documents are meant",
		},
		"all with a filter": {
			with(func(r *ops.StartRequest) { r.Since = start() }), "ids: expected one of ids, since",
		},
		"no reason":                  {with(func(r *ops.StartRequest) { r.Why = " " }), "why: expected the reason"},
		"a reindex without a filter": {ops.StartRequest{Kind: run.Reindex, Why: "x"}, "all: expected a filter"},
		"a reapply of everything":    {ops.StartRequest{Kind: run.Reapply, Why: "x"}, "all: expected a filter"},
		"lines of a reapply": {
			with(func(r *ops.StartRequest) { r.Kind, r.OverwriteEdits = run.Reapply, []int64{1} }), `found "reapply"`,
		},
		"a reindex of a run": {
			ops.StartRequest{Kind: run.Reindex, Why: "x", Run: "run-1"},
			"run: goes with a kind that tries failed documents again",
		},
		"a run and its documents": {
			with(func(r *ops.StartRequest) { r.Run, r.IDs, r.All = "run-1", []string{"a"}, false }),
			"ids: expected one of ids, since",
		},
		"lines of a replay": {
			with(func(r *ops.StartRequest) { r.OverwriteEdits = []int64{1} }),
			`overwrite_edits, not_comparable: go with a kind that writes lines again, found "replay"`,
		},
		"a replay compares nothing": {
			with(func(r *ops.StartRequest) { r.NotComparable = true }),
			"overwrite_edits, not_comparable: go with a kind",
		},
		"too many lines": {
			with(func(r *ops.StartRequest) { r.Kind, r.OverwriteEdits = run.Reindex, make([]int64, 10_001) }),
			"overwrite_edits: expected at most 10000 lines, found 10001",
		},
		"findings of a replay": {
			ops.StartRequest{Kind: run.Replay, Why: "x", Findings: []reconcile.Class{reconcile.Edited}},
			`findings, overwrite_edits, not_comparable: go with a kind that writes lines again, found "replay"`,
		},
		"findings that have no line": {
			ops.StartRequest{Kind: run.Reindex, Why: "x", Findings: []reconcile.Class{reconcile.Edited, "left_behind"}},
			`findings: expected edited, mark_without_audit, no_document, not_in_ledger, not_named, row_missing, stale, tracking_missing, found "left_behind"`,
		},
		"findings and a time": {
			ops.StartRequest{
				Kind: run.Reindex, Why: "x", Findings: []reconcile.Class{reconcile.Edited}, Since: start(),
			}, "ids: expected one of ids, since",
		},
		"findings and lines": {
			ops.StartRequest{
				Kind: run.Reindex, Why: "x", Findings: []reconcile.Class{reconcile.Edited}, OverwriteEdits: []int64{1},
			}, "findings: name the lines themselves",
		},
		"findings of everything": {
			ops.StartRequest{Kind: run.Reindex, Why: "x", All: true, Findings: []reconcile.Class{reconcile.Edited}},
			"ids: expected one of ids, since",
		},
		"no line": {
			with(func(r *ops.StartRequest) { r.Kind, r.OverwriteEdits = run.Reindex, []int64{7, 0} }),
			"overwrite_edits: expected the ids of lines, found 0",
		},
		"lines without documents": {
			with(func(r *ops.StartRequest) { r.Kind, r.OverwriteEdits, r.All = run.Reindex, []int64{7}, false }),
			"all: expected a filter",
		},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := r.ops.StartRun(by(t, "pat"), c.request)
			require.Equal(t, ops.Usage, refusal(err), "%v", err)
			require.ErrorContains(t, err, c.says)
		})
	}
	require.Empty(t, r.runStore.Audits())
	require.Zero(t, r.queue.Sends())
	require.Empty(t, r.search.queries, "nothing was even looked for")
}

func TestADryRunOfARunCountsAndChangesNothing(t *testing.T) {
	r := newRuns(t)
	r.fill(25)
	r.put(result(101, "waits", ""), result(102, "is committed", `{"status":"committed"}`),
		documentOf("elsewhere", "dev", 103, "x", failed(1, fault.Document, "2628")))
	for name, c := range map[string]struct {
		request ops.StartRequest
		matched int
	}{
		"replay":           {ops.StartRequest{Kind: run.Replay, All: true}, 25},
		"since":            {ops.StartRequest{Kind: run.Replay, Since: start().Add(-50 * time.Minute)}, 25},
		"since later":      {ops.StartRequest{Kind: run.Replay, Since: start().Add(50 * time.Minute)}, 0},
		"at most":          {ops.StartRequest{Kind: run.Replay, All: true, Limit: 3}, 3},
		"drain":            {ops.StartRequest{Kind: run.Drain}, 1},
		"reindex":          {ops.StartRequest{Kind: run.Reindex, All: true}, 1},
		"ids, one twice":   {ops.StartRequest{Kind: run.Replay, IDs: []string{id(1), id(2), id(1)}}, 2},
		"ids, at most one": {ops.StartRequest{Kind: run.Replay, IDs: []string{id(1), id(2)}, Limit: 1}, 1},
	} {
		t.Run(name, func(t *testing.T) {
			c.request.DryRun = true
			res := must(r.ops.StartRun(by(t, "pat"), c.request))(t)
			require.Equal(t, []any{true, "", c.matched, false}, []any{res.DryRun, res.Run, res.Matched, res.AtLeast})
			require.Len(t, res.First, min(c.matched, 20))
		})
	}
	require.Empty(t, r.runStore.Audits())
	require.Zero(t, r.queue.Sends())
}

// A dry run says which named documents the run would leave alone, and counts the others by their failure.
func TestADryRunExplainsNamedDocuments(t *testing.T) {
	r := newRuns(t)
	r.put(
		result(1, "a", failed(1, fault.Document, "2628")), result(2, "b", failed(2, fault.Document, "547")),
		result(3, "c", failed(3, fault.Document, "2628")),
		result(4, "d", `{"status":"retry_scheduled","retry_count":1,"retry_after":1766080000}`),
		result(5, "e", `{"status":"committed"}`), result(6, "f", `{}`),
		documentOf(id(7), "dev", 7, "x", failed(1, fault.Document, "2628")), result(8, "g", ""),
	)
	left := func(res ops.Started) map[string]string {
		why := map[string]string{}
		for _, n := range res.NotTaken {
			why[n.ID] = n.Why
		}
		return why
	}
	ids := []string{id(1), id(2), id(3), id(4), id(5), id(6), id(7), id(8), id(9)}
	replay := r.start(ops.StartRequest{Kind: run.Replay, IDs: ids, DryRun: true})
	require.Equal(t, map[string]string{
		id(5): "it is committed", id(6): "it was never offered", id(7): `it belongs to the environment "dev"`,
		id(9): "no document has this id",
	}, left(replay))
	require.Equal(t, 5, replay.Matched)
	require.Equal(t, ops.Failures{Status: "failed", Kind: "document", Code: "2628", Documents: 2}, replay.Failures[0])
	drain := r.start(ops.StartRequest{Kind: run.Drain, IDs: ids, DryRun: true})
	require.Equal(t, "it waits for a retry", left(drain)[id(4)])
	require.Equal(t, "it is failed", left(drain)[id(1)])
	require.Equal(t, 1, drain.Matched)
}

func TestStartRun(t *testing.T) {
	r := newRuns(t)
	r.fill(25)
	request := replayAll()
	request.All, request.Since, request.Rate, request.Limit = false, start().Add(-time.Hour), 600, 10
	res := r.start(request)
	require.Regexp(t, `^replay-20251218-160000-[0-9a-f]{8}$`, res.Run)
	require.Equal(t, []any{10, false, ""}, []any{res.Matched, res.AtLeast, res.Note})
	row, ok, err := r.runStore.Run(t.Context(), res.Run)
	require.NoError(t, err)
	require.True(t, ok)
	require.Equal(t, []any{run.Replay, "web", 600, 10, 10, false, "pat", "column widened", run.RunRunning},
		[]any{
			row.Kind, row.SysName, row.Rate, row.Limit, row.Matched, row.AtLeast, row.RequestedBy, row.Why, row.Status,
		})
	require.JSONEq(t, `{"from":"2025-12-18T15:00:00Z"}`, string(row.Filter))

	entries := r.audited(run.CodeRunStart)
	require.Len(t, entries, 1)
	require.Equal(t, []any{"INFO", "pat", "column widened", res.Run},
		[]any{entries[0].Level, entries[0].By, entries[0].Why, entries[0].Run})
	require.JSONEq(t, `{"kind":"replay","matched":10,"at_least":false,"here":false}`, string(entries[0].Detail))

	messages := r.queue.Messages()
	require.Len(t, messages, 1)
	notice := must(run.ReadPayload(messages[0].Body, run.RunMessage))(t)
	require.Equal(t, []any{res.Run, "web", 0}, []any{notice.RunID, notice.SysName, notice.Epoch})
}

func TestTheCountOfDocumentsIsBounded(t *testing.T) {
	for name, c := range map[string]struct {
		spyDocuments, limit int
		matched             int
		atLeast             bool
	}{
		"ten thousand":       {10_000, 0, 10_000, false},
		"one more":           {10_001, 0, 10_000, true},
		"many":               {12_500, 0, 10_000, true},
		"many, at most some": {12_500, 500, 500, false},
		"many, at most all":  {12_500, 10_000, 10_000, false},
		"many, at most more": {12_500, 12_000, 10_000, true},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRuns(t)
			r.search.invented = c.spyDocuments
			request := replayAll()
			request.Limit = c.limit
			res := r.start(request)
			require.Equal(t, []any{c.matched, c.atLeast}, []any{res.Matched, res.AtLeast})
			row, _, err := r.runStore.Run(t.Context(), res.Run)
			require.NoError(t, err)
			require.Equal(t, []any{c.matched, c.atLeast}, []any{row.Matched, row.AtLeast})
			require.LessOrEqual(t, len(r.search.queries), 11, "the count is bounded")
		})
	}
}

func TestARunWithoutDocumentsIsNotStarted(t *testing.T) {
	r := newRuns(t)
	res := r.start(replayAll())
	require.Equal(t, []any{"", 0}, []any{res.Run, res.Matched})
	require.NotNil(t, res.First)
	require.Empty(t, r.runStore.Audits())
	require.Zero(t, r.queue.Sends())
}

func TestASearchThatDoesNotEnd(t *testing.T) {
	r := newRuns(t)
	r.search.invented, r.search.fails = 1500, fault.New(fault.Document, "test: page", "continuation", "forgotten")
	res := r.start(replayAll())
	require.Equal(t, []any{1500, true}, []any{res.Matched, res.AtLeast}, "what was found is at least so many")

	r.search.invented = 0
	res = r.start(replayAll())
	require.NotEmpty(t, res.Run, "that nothing was found in time does not say that nothing is there")
	require.Equal(t, []any{0, true}, []any{res.Matched, res.AtLeast})

	r.search.fails = down()
	_, err := r.ops.StartRun(by(t, "pat"), replayAll())
	require.True(t, fault.IsDependency(err))
	require.Len(t, r.audited(run.CodeRunStart), 2, "a search that failed begins nothing")
}

func TestAShadowChangesNothing(t *testing.T) {
	r := newRuns(t)
	r.fill(1)
	begun := r.start(replayAll()).Run
	r.readOnly = "MODE=shadow: nothing is written"
	r.renew()
	words := ops.RunRequest{Run: begun, Why: "x"}
	for name, act := range map[string]func() error{
		"start":  func() error { _, err := r.ops.StartRun(by(t, "pat"), replayAll()); return err },
		"cancel": func() error { _, err := r.ops.RunCancel(by(t, "pat"), words); return err },
		"resume": func() error { return errOf(r.ops.RunResume(by(t, "pat"), words)) },
		"mark": func() error {
			_, err := r.ops.MarkCommitted(by(t, "pat"), ops.MarkRequest{ID: id(1), Why: "x"})
			return err
		},
		"requeue": func() error {
			_, err := r.ops.BatchRequeue(by(t, "pat"), ops.RequeueRequest{Run: begun, Why: "x"})
			return err
		},
	} {
		err := act()
		require.Equal(t, ops.Conflict, refusal(err), name)
		require.ErrorContains(t, err, "MODE=shadow")
	}
	request := replayAll()
	request.DryRun = true
	require.Equal(t, 1, r.start(request).Matched)
}

func TestARunIsNotStartedWithoutItsAudit(t *testing.T) {
	r := newRuns(t)
	r.fill(1)
	r.runStore.fails = down()
	_, err := r.ops.StartRun(by(t, "pat"), replayAll())
	require.Regexp(t, `run replay-\S+ may have been started: .run list. says so`, err.Error(),
		"the answer may be lost after its commit")
	require.True(t, fault.IsDependency(err))
	require.Zero(t, r.queue.Sends())

	r.runStore.fails = nil
	r.open(fault.Infrastructure, "connection")
	_, err = r.ops.StartRun(by(t, "pat"), replayAll())
	require.True(t, breaker.IsRefusal(err), "%v", err)
	require.ErrorContains(t, err, "nothing was done, because no audit row can be written")
	require.Zero(t, r.queue.Sends())
}

// The error of opening the database is returned as it is.
func TestRunsWaitForSQL(t *testing.T) {
	w := newWorld(t)
	notAdopted := fault.New(fault.Infrastructure, "app: open sql", "ledger_not_adopted",
		"nobody said what was written before")
	o := ops.New(ops.Ports{
		Documents: w.docs, Finder: w.docs, Breaker: w.breaker, ReportNames: fakeReports{}.Names(),
		Stores: func(context.Context) (ops.Stores, error) { return ops.Stores{}, notAdopted },
	}, ops.Options{SysName: "web"})
	for name, ask := range map[string]func() error{
		"list":   func() error { _, err := o.RunList(t.Context(), ops.RunQuery{}); return err },
		"show":   func() error { _, err := o.RunShow(t.Context(), "a"); return err },
		"cancel": func() error { return errOf(o.RunCancel(by(t, "b"), ops.RunRequest{Run: "a", Why: "c"})) },
		"report": func() error { _, err := o.Report(t.Context(), "runs"); return err },
	} {
		err := ask()
		require.Equal(t, "ledger_not_adopted", fault.CodeOf(err), name)
		require.True(t, fault.IsDependency(err), name)
	}
}

// A run whose rows begin to go is shown, and nothing goes on with it.
func TestARunThatRetentionDeletesIsLeftAlone(t *testing.T) {
	r := newRuns(t)
	r.fill(1)
	old := r.start(replayAll()).Run
	r.handOff(old, 3, 2, 3)
	_, err := r.runStore.CompleteRun(t.Context(), old, time.Minute, func(run.RunStatus, run.Stats) run.Audit {
		return run.Audit{Action: run.CodeRunDone}
	})
	require.NoError(t, err)
	require.Equal(t, 1, r.runStore.PurgeRun(old, 1))
	for says, ask := range map[string]func() error{
		"it is purged": func() error {
			_, err := r.ops.RunResume(by(t, "pat"), ops.RunRequest{Run: old, Why: "x"})
			return err
		},
		"is deleted by retention": func() error {
			_, err := r.ops.BatchRequeue(by(t, "pat"), ops.RequeueRequest{Batch: run.BatchID("web", old, 3), Why: "x"})
			return err
		},
		"its run is deleted by retention": func() error {
			_, err := r.ops.BatchRequeue(by(t, "pat"), ops.RequeueRequest{Run: old, Why: "x"})
			return err
		},
		"what it left is not known any more": func() error {
			_, err := r.ops.StartRun(by(t, "pat"), ops.StartRequest{Kind: run.Replay, Run: old, Why: "x"})
			return err
		},
	} {
		err := ask()
		require.ErrorContains(t, err, says)
		require.Contains(t, []ops.Refusal{ops.NotFound, ops.Conflict}, refusal(err), says)
	}
	p := must(r.ops.RunShow(t.Context(), old))(t)
	require.Equal(t, run.RunPurged, p.Status)
}
