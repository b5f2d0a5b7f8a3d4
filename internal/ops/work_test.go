package ops_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"sqlwriter/internal/fault"
	"sqlwriter/internal/inmem"
	"sqlwriter/internal/ops"
	"sqlwriter/internal/run"
	"sqlwriter/internal/writer"
)

// runs is a world with the books of runs, their queue and their reports.
type runs struct {
	*world
	books    *books
	queue    *inmem.Queue
	search   *search
	readOnly string
}

func newRuns(t *testing.T) *runs {
	t.Helper()
	w := newWorld(t)
	now := func() time.Time { return w.clock }
	r := &runs{world: w, books: &books{RunStore: inmem.NewRunStore(now)}, queue: inmem.NewQueue(now)}
	r.search = &search{Selection: w.docs.Selection(1000)}
	r.renew()
	return r
}

// renew makes the use case anew, from what the test has changed.
func (r *runs) renew() {
	zone, err := time.LoadLocation("America/Chicago")
	require.NoError(r.t, err)
	r.ops = ops.New(ops.Ports{
		Documents: r.docs, Backlog: r.docs, Gate: r.gate, Commit: r.commit, Journal: r.journal,
		Runs: r.books, Reports: reports{}, RunQueue: r.queue, Selection: r.search,
	}, ops.Options{SysName: "web", Location: zone, AppVersion: "v1", ReadOnly: r.readOnly, Now: func() time.Time { return r.clock }})
}

// books are the books of runs, which may be down, or become so.
type books struct {
	*inmem.RunStore
	fails error
	// requeues is how many batches may be sent again before the books are down.
	requeues int
	// requeued is called after each batch that is sent again.
	requeued func()
}

func (b *books) StartRun(ctx context.Context, r run.Run, a run.Audit) error {
	if b.fails != nil {
		return b.fails
	}
	return b.RunStore.StartRun(ctx, r, a)
}

func (b *books) RequeueJob(ctx context.Context, id string, a run.Audit) (bool, error) {
	if b.fails != nil {
		if b.requeues == 0 {
			return false, b.fails
		}
		b.requeues--
	}
	if b.requeued != nil {
		defer b.requeued()
	}
	return b.RunStore.RequeueJob(ctx, id, a)
}

// search gives pages of documents that are nowhere, or those of the container.
type search struct {
	inmem.Selection
	invented int
	fails    error
	queries  []run.Query
}

func (s *search) Page(ctx context.Context, q run.Query, continuation string) ([]writer.Waiting, string, error) {
	s.queries = append(s.queries, q)
	if s.invented == 0 && s.fails == nil {
		return s.Selection.Page(ctx, q, continuation)
	}
	at := 0
	if continuation != "" {
		if _, err := fmt.Sscan(continuation, &at); err != nil {
			return nil, "", err
		}
	}
	if at >= s.invented {
		return nil, "", s.fails
	}
	var page []writer.Waiting
	for ; at < s.invented && len(page) < 1000; at++ {
		page = append(page, writer.Waiting{ID: id(int64(at)), Status: q.Statuses[0], Kind: "document", Code: "2628"})
	}
	if at == s.invented && s.fails == nil {
		return page, "", nil
	}
	return page, fmt.Sprint(at), nil
}

// reports has one.
type reports struct{}

func (reports) Names() []run.ReportName {
	return []run.ReportName{{Name: "runs", Meaning: "the latest"}}
}

func (reports) Report(_ context.Context, name string) (run.Table, error) {
	if name != "runs" {
		return run.Table{}, fault.New(fault.Internal, "test: report", "no_report", "there is no report %q; there are runs", name)
	}
	return run.Table{Columns: []string{"run"}, Rows: [][]any{{"a"}}}, nil
}

// replay asks to replay everything.
func replay() ops.StartRequest {
	return ops.StartRequest{Kind: run.Replay, All: true, By: "pat", Why: "column widened"}
}

func (r *runs) start(request ops.StartRequest) ops.Started {
	r.t.Helper()
	res, err := r.ops.StartRun(r.t.Context(), request)
	require.NoError(r.t, err)
	return res
}

// handOff gives a run batches of the documents, as a manager does, and has workers end them: those that are numbered in
// failed are given up.
func (r *runs) handOff(id string, batches, each int, failed ...int) {
	r.t.Helper()
	ctx := r.t.Context()
	row, ok, err := r.books.ClaimRun(ctx, id, 0, run.Worker{ID: "manager-1"}, time.Minute)
	require.NoError(r.t, err)
	require.True(r.t, ok)
	lease := run.Lease{Run: id, Owner: "manager-1", Epoch: row.Epoch}
	chunk := run.Chunk{First: 1, Initial: run.Queued}
	for b := range batches {
		var ids []string
		for d := range each {
			ids = append(ids, fmt.Sprintf("doc-%d-%d", b+1, d))
		}
		chunk.Batches = append(chunk.Batches, ids)
	}
	require.NoError(r.t, r.books.AddChunk(ctx, lease, chunk))
	require.NoError(r.t, r.books.EndHandOff(ctx, lease, run.Audit{Code: run.CodeRunHandedOff}))
	for b := range batches {
		claimed, err := r.books.ClaimJob(ctx, run.JobID("web", id, b+1), run.Worker{ID: fmt.Sprintf("worker-%d", b)}, time.Minute, run.Audit{})
		require.NoError(r.t, err)
		if slices.Contains(failed, b+1) {
			require.NoError(r.t, r.books.FailJob(ctx, claimed.Hold, "Max queue retries exceeded", run.Audit{}))
			continue
		}
		var outcomes []run.ItemOutcome
		for _, document := range claimed.Open {
			outcomes = append(outcomes, run.ItemOutcome{Document: document, Outcome: run.DocCommitted})
		}
		require.NoError(r.t, r.books.SaveOutcomes(ctx, claimed.Hold, outcomes, nil))
		_, err = r.books.FinishJob(ctx, claimed.Hold, func(run.JobStats) run.Audit { return run.Audit{} })
		require.NoError(r.t, err)
	}
}

func (r *runs) complete(id string) {
	r.t.Helper()
	ok, err := r.books.CompleteRun(r.t.Context(), id, time.Minute, func(run.RunStatus, run.Stats) run.Audit { return run.Audit{} })
	require.NoError(r.t, err)
	require.True(r.t, ok)
}

// audited are the entries of a code.
func (r *runs) audited(code string) (found []run.Audit) {
	for _, a := range r.books.Audits() {
		if a.Code == code {
			found = append(found, a)
		}
	}
	return found
}

func TestARunThatCannotBeMeantIsRefused(t *testing.T) {
	r := newRuns(t)
	r.fill(1)
	many := make([]string, 10_001)
	for i := range many {
		many[i] = id(int64(i))
	}
	with := func(change func(*ops.StartRequest)) ops.StartRequest {
		request := replay()
		change(&request)
		return request
	}
	for name, c := range map[string]struct {
		request ops.StartRequest
		says    string
	}{
		"no kind":             {with(func(r *ops.StartRequest) { r.Kind = "reconcile" }), `kind: expected drain, replay or reindex, found "reconcile"`},
		"no kind of error":    {with(func(r *ops.StartRequest) { r.ErrorKind, r.All = "documents", false }), `error_kind: expected one of infrastructure, `},
		"from after to":       {with(func(r *ops.StartRequest) { r.From, r.To, r.All = start(), start(), false }), "to: expected a time after from"},
		"too many ids":        {with(func(r *ops.StartRequest) { r.IDs, r.All = many, false }), "ids: expected at most 10000, found 10001"},
		"ids and a code":      {with(func(r *ops.StartRequest) { r.IDs, r.Code, r.All = []string{"a"}, "1", false }), "ids: go with no other filter"},
		"an id that is none":  {with(func(r *ops.StartRequest) { r.IDs, r.All = []string{"a/b"}, false }), "id: expected the id of a document"},
		"an empty id":         {with(func(r *ops.StartRequest) { r.IDs, r.All = []string{""}, false }), "id: expected the id of a document, found nothing"},
		"a rate below zero":   {with(func(r *ops.StartRequest) { r.Rate = -1 }), "rate: expected 0 to 100000 documents a minute, found -1"},
		"a limit too large":   {with(func(r *ops.StartRequest) { r.Limit = 100_000_001 }), "limit: expected 0 to 100000000, found 100000001"},
		"no pattern":          {with(func(r *ops.StartRequest) { r.Pattern = "three_phase" }), `pattern: expected two_phase, checkpoint or optimistic, found "three_phase"`},
		"an empty filter":     {with(func(r *ops.StartRequest) { r.All = false }), "all: expected a filter, or that all documents are meant"},
		"all with a filter":   {with(func(r *ops.StartRequest) { r.Code = "1" }), "all: goes with no filter"},
		"nobody":              {with(func(r *ops.StartRequest) { r.By = "" }), "by: expected who asks"},
		"no reason":           {with(func(r *ops.StartRequest) { r.Why = " " }), "why: expected the reason"},
		"a reindex of nobody": {ops.StartRequest{Kind: run.Reindex, By: "pat", Why: "x"}, "all: expected a filter"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := r.ops.StartRun(t.Context(), c.request)
			require.Equal(t, ops.Usage, refusal(err), "%v", err)
			require.ErrorContains(t, err, c.says)
		})
	}
	require.Empty(t, r.books.Audits())
	require.Zero(t, r.queue.Sends())
	require.Empty(t, r.search.queries, "nothing was even looked for")
}

func TestADryRunOfARunCountsAndChangesNothing(t *testing.T) {
	r := newRuns(t)
	r.fill(25)
	r.put(result(101, "waits", ""), result(102, "is committed", `{"status":"committed"}`), documentOf("elsewhere", "dev", 103, "x", failed(1, fault.Document, "2628")))
	for name, c := range map[string]struct {
		request ops.StartRequest
		matched int
	}{
		"replay":           {ops.StartRequest{Kind: run.Replay, All: true}, 25},
		"by code":          {ops.StartRequest{Kind: run.Replay, Filter: run.Filter{Code: "547"}}, 0},
		"by kind":          {ops.StartRequest{Kind: run.Replay, Filter: run.Filter{ErrorKind: "document"}}, 25},
		"by time":          {ops.StartRequest{Kind: run.Replay, Filter: run.Filter{From: start().Add(-50 * time.Minute)}}, 15},
		"at most":          {ops.StartRequest{Kind: run.Replay, All: true, Limit: 3}, 3},
		"drain":            {ops.StartRequest{Kind: run.Drain}, 1},
		"reindex":          {ops.StartRequest{Kind: run.Reindex, All: true}, 1},
		"ids, one twice":   {ops.StartRequest{Kind: run.Reindex, Filter: run.Filter{IDs: []string{"a", "b", "a"}}}, 2},
		"ids, at most one": {ops.StartRequest{Kind: run.Replay, Filter: run.Filter{IDs: []string{"a", "b"}}, Limit: 1}, 1},
	} {
		t.Run(name, func(t *testing.T) {
			c.request.DryRun = true
			res, err := r.ops.StartRun(t.Context(), c.request)
			require.NoError(t, err)
			require.Equal(t, []any{true, "", c.matched, false, run.TwoPhase}, []any{res.DryRun, res.Run, res.Matched, res.AtLeast, res.Pattern})
			require.Len(t, res.First, min(c.matched, 20))
		})
	}
	require.Empty(t, r.books.Audits())
	require.Zero(t, r.queue.Sends())
}

func TestTheFilterOfARunSurvivesJSON(t *testing.T) {
	request := replay()
	request.ErrorKind, request.Code, request.From, request.IDs = "document", "2628", start(), []string{"a"}
	text, err := json.Marshal(request)
	require.NoError(t, err)
	var back ops.StartRequest
	require.NoError(t, json.Unmarshal(text, &back))
	require.Equal(t, request, back, "a run has a kind, and so have errors")
}

func TestARunIsBegun(t *testing.T) {
	r := newRuns(t)
	r.fill(25)
	request := replay()
	request.All, request.Code, request.Rate, request.Limit = false, "2628", 600, 10
	res := r.start(request)
	require.Regexp(t, `^replay-20251218-160000-[0-9a-f]{8}$`, res.Run)
	require.Equal(t, []any{10, false, run.TwoPhase, ""}, []any{res.Matched, res.AtLeast, res.Pattern, res.Note})
	row, ok, err := r.books.Run(t.Context(), res.Run)
	require.NoError(t, err)
	require.True(t, ok)
	require.Equal(t, []any{run.Replay, "web", run.TwoPhase, 600, 10, 10, false, "pat", "column widened", run.RunRunning},
		[]any{row.Kind, row.SysName, row.Pattern, row.Rate, row.Limit, row.Matched, row.AtLeast, row.RequestedBy, row.Why, row.Status})
	require.JSONEq(t, `{"code":"2628"}`, string(row.Filter))

	entries := r.audited(run.CodeRunStart)
	require.Len(t, entries, 1)
	require.Equal(t, []any{"INFO", "pat", "column widened", res.Run}, []any{entries[0].Level, entries[0].By, entries[0].Why, entries[0].Run})
	require.JSONEq(t, `{"kind":"replay","matched":10,"at_least":false,"pattern":"two_phase"}`, string(entries[0].Detail))

	messages := r.queue.Messages()
	require.Len(t, messages, 1)
	notice, err := run.ReadNotice(messages[0].Body, run.RunMessage)
	require.NoError(t, err)
	require.Equal(t, []any{res.Run, "web", 0}, []any{notice.RunID, notice.SysName, notice.RunEpoch})
}

func TestThePatternIsChosen(t *testing.T) {
	for name, c := range map[string]struct {
		documents, limit int
		asked            string
		matched          int
		atLeast          bool
		pattern          string
	}{
		"ten thousand":         {10_000, 0, "", 10_000, false, run.TwoPhase},
		"one more":             {10_001, 0, "", 10_000, true, run.Checkpoint},
		"many":                 {12_500, 0, "", 10_000, true, run.Checkpoint},
		"many, at most some":   {12_500, 500, "", 500, false, run.TwoPhase},
		"many, at most all":    {12_500, 10_000, "", 10_000, false, run.TwoPhase},
		"many, at most more":   {12_500, 12_000, "", 10_000, true, run.Checkpoint},
		"many, asked for":      {12_500, 0, run.TwoPhase, 10_000, true, run.TwoPhase},
		"few, asked for other": {5, 0, run.Optimistic, 5, false, run.Optimistic},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRuns(t)
			r.search.invented = c.documents
			request := replay()
			request.Limit, request.Pattern = c.limit, c.asked
			res := r.start(request)
			require.Equal(t, []any{c.matched, c.atLeast, c.pattern}, []any{res.Matched, res.AtLeast, res.Pattern})
			row, _, err := r.books.Run(t.Context(), res.Run)
			require.NoError(t, err)
			require.Equal(t, []any{c.pattern, c.matched, c.atLeast}, []any{row.Pattern, row.Matched, row.AtLeast})
			require.LessOrEqual(t, len(r.search.queries), 11, "the count is bounded")
		})
	}
}

func TestNothingToDoIsNoRun(t *testing.T) {
	r := newRuns(t)
	res := r.start(replay())
	require.Equal(t, []any{"", 0}, []any{res.Run, res.Matched})
	require.NotNil(t, res.First)
	require.Empty(t, r.books.Audits())
	require.Zero(t, r.queue.Sends())
}

func TestASearchThatDoesNotEnd(t *testing.T) {
	r := newRuns(t)
	r.search.invented, r.search.fails = 1500, fault.New(fault.Document, "test: page", "continuation", "forgotten")
	res := r.start(replay())
	require.Equal(t, []any{1500, true, run.Checkpoint}, []any{res.Matched, res.AtLeast, res.Pattern}, "what was found is at least so many")

	r.search.invented = 0
	res = r.start(replay())
	require.NotEmpty(t, res.Run, "that nothing was found in time does not say that nothing is there")
	require.Equal(t, []any{0, true}, []any{res.Matched, res.AtLeast})

	r.search.fails = down()
	_, err := r.ops.StartRun(t.Context(), replay())
	require.True(t, fault.IsDependency(err))
	require.Len(t, r.audited(run.CodeRunStart), 2, "a search that failed begins nothing")
}

func TestAShadowBeginsNoRun(t *testing.T) {
	r := newRuns(t)
	r.fill(1)
	begun := r.start(replay()).Run
	r.readOnly = "MODE=shadow: nothing is written"
	r.renew()
	words := ops.RunRequest{Run: begun, By: "pat", Why: "x"}
	for name, act := range map[string]func() error{
		"start":  func() error { _, err := r.ops.StartRun(t.Context(), replay()); return err },
		"resume": func() error { _, err := r.ops.RunResume(t.Context(), words); return err },
		"requeue": func() error {
			_, err := r.ops.BatchRequeue(t.Context(), ops.RequeueRequest{Run: begun, By: "pat", Why: "x"})
			return err
		},
	} {
		err := act()
		require.Equal(t, ops.Conflict, refusal(err), name)
		require.ErrorContains(t, err, "MODE=shadow")
	}
	request := replay()
	request.DryRun = true
	require.Equal(t, 1, r.start(request).Matched)
}

func TestAMessageThatCannotBeSent(t *testing.T) {
	r := newRuns(t)
	r.fill(1)
	r.queue.Always(inmem.QueueDown())
	res := r.start(replay())
	require.NotEmpty(t, res.Run, "the run is there all the same")
	require.Contains(t, res.Note, "the timer sends one within about ten minutes: inmem: send: infrastructure down: the queue cannot be reached")
	_, ok, err := r.books.Run(t.Context(), res.Run)
	require.NoError(t, err)
	require.True(t, ok)
}

func TestNoRunWithoutItsAudit(t *testing.T) {
	r := newRuns(t)
	r.fill(1)
	r.books.fails = down()
	_, err := r.ops.StartRun(t.Context(), replay())
	require.ErrorContains(t, err, "nothing was done, because no audit row can be written")
	require.True(t, fault.IsDependency(err))
	require.Zero(t, r.queue.Sends())

	r.books.fails = nil
	r.open(fault.Infrastructure, "connection")
	_, err = r.ops.StartRun(t.Context(), replay())
	require.Equal(t, "gate_open", fault.CodeOf(err))
	require.Zero(t, r.queue.Sends())
}

func TestRunsWaitForSQL(t *testing.T) {
	w := newWorld(t) // its use case has no books
	for name, ask := range map[string]func() error{
		"start": func() error { _, err := w.ops.RunList(t.Context(), 0); return err },
		"show":  func() error { _, err := w.ops.RunShow(t.Context(), "a"); return err },
		"cancel": func() error {
			_, err := w.ops.RunCancel(t.Context(), ops.RunRequest{Run: "a", By: "b", Why: "c"})
			return err
		},
		"report": func() error { _, err := w.ops.Report(t.Context(), "runs"); return err },
		"names":  func() error { _, err := w.ops.ReportNames(t.Context()); return err },
	} {
		err := ask()
		require.Equal(t, "starting", fault.CodeOf(err), name)
		require.True(t, fault.IsDependency(err), name)
	}
}

func TestARunIsShownWithItsNumbers(t *testing.T) {
	r := newRuns(t)
	r.fill(1)
	begun := r.start(replay()).Run
	r.handOff(begun, 3, 4, 2)
	r.clock = r.clock.Add(16 * time.Second)
	p, err := r.ops.RunShow(t.Context(), begun)
	require.NoError(t, err)
	require.Equal(t, []any{8, 12, 0.5, int64(8)}, []any{p.Done, p.Documents, p.PerSecond, p.LeftSeconds})
	require.Equal(t, map[run.Status]int{run.Failed: 1, run.Completed: 2}, p.Stats.Jobs)
	require.Equal(t, map[run.Outcome]int{run.DocCommitted: 8, "": 4}, p.Stats.Outcomes)
	require.Equal(t, "2025-12-18T10:00:00-06:00", p.StartedAt.Format(time.RFC3339), "in the deployment's zone")

	r.complete(begun)
	p, err = r.ops.RunShow(t.Context(), begun)
	require.NoError(t, err)
	require.Equal(t, run.RunCompleted, p.Status)
	require.Zero(t, p.LeftSeconds)

	all, err := r.ops.RunList(t.Context(), 0)
	require.NoError(t, err)
	require.Equal(t, []ops.RunSummary{{Run: p.Run, Jobs: p.Stats.Jobs}}, all)

	_, err = r.ops.RunShow(t.Context(), "nobody")
	require.Equal(t, ops.NotFound, refusal(err))
	for _, id := range []string{"", "a b", strings.Repeat("x", 65)} {
		_, err = r.ops.RunShow(t.Context(), id)
		require.Equal(t, ops.Usage, refusal(err))
	}
	for _, limit := range []int{-1, 101} {
		_, err = r.ops.RunList(t.Context(), limit)
		require.Equal(t, ops.Usage, refusal(err))
	}
}

// 511 documents match, 120 a minute are handed off, and the first 20 are done: that is not all of the run.
func TestProgressIsOfWhatThePreviewFound(t *testing.T) {
	r := newRuns(t)
	r.search.invented = 511
	request := replay()
	request.Rate = 120
	begun := r.start(request).Run
	row, ok, err := r.books.ClaimRun(t.Context(), begun, 0, run.Worker{ID: "manager-1"}, time.Minute)
	require.NoError(t, err)
	require.True(t, ok)
	lease := run.Lease{Run: begun, Owner: "manager-1", Epoch: row.Epoch}
	r.addAndDo(lease, 1, 20)
	r.clock = r.clock.Add(5 * time.Second) // 4 a second, faster than the rate goes on
	p, err := r.ops.RunShow(t.Context(), begun)
	require.NoError(t, err)
	known, more := p.Known()
	require.Equal(t, []any{20, 511, false, int64(245)}, []any{p.Done, known, more, p.LeftSeconds}, "491 at 2 a second")

	r.clock = r.clock.Add(95 * time.Second) // 0.2 a second: the workers are slower than the rate
	p, err = r.ops.RunShow(t.Context(), begun)
	require.NoError(t, err)
	require.Equal(t, int64(2455), p.LeftSeconds)

	require.NoError(t, r.books.EndHandOff(t.Context(), lease, run.Audit{}))
	p, err = r.ops.RunShow(t.Context(), begun)
	require.NoError(t, err)
	known, more = p.Known()
	require.Equal(t, []any{20, false, int64(0)}, []any{known, more, p.LeftSeconds}, "the others have changed since")
}

// addAndDo hands one batch off and has it done.
func (r *runs) addAndDo(l run.Lease, number, documents int) {
	r.t.Helper()
	var ids []string
	for i := range documents {
		ids = append(ids, fmt.Sprintf("doc-%d-%d", number, i))
	}
	ctx := r.t.Context()
	require.NoError(r.t, r.books.AddChunk(ctx, l, run.Chunk{First: number, Initial: run.Queued, Batches: [][]string{ids}}))
	claimed, err := r.books.ClaimJob(ctx, run.JobID("web", l.Run, number), run.Worker{ID: fmt.Sprintf("worker-%d", number)}, time.Minute, run.Audit{})
	require.NoError(r.t, err)
	var outcomes []run.ItemOutcome
	for _, document := range claimed.Open {
		outcomes = append(outcomes, run.ItemOutcome{Document: document, Outcome: run.DocCommitted})
	}
	require.NoError(r.t, r.books.SaveOutcomes(ctx, claimed.Hold, outcomes, nil))
	_, err = r.books.FinishJob(ctx, claimed.Hold, func(run.JobStats) run.Audit { return run.Audit{} })
	require.NoError(r.t, err)
}

func TestTheTimeThatIsLeft(t *testing.T) {
	handedOff := start()
	for name, c := range map[string]struct {
		run       run.Run
		done      int
		perSecond float64
		left      time.Duration
	}{
		"at the speed":                   {run.Run{Matched: 100}, 20, 2, 40 * time.Second},
		"at the rate":                    {run.Run{Matched: 100, Documents: 40, Rate: 60}, 20, 1000, time.Minute},
		"slower than the rate":           {run.Run{Matched: 100, Documents: 40, Rate: 6000}, 20, 1, 80 * time.Second},
		"nothing done yet":               {run.Run{Matched: 100}, 0, 0, 0},
		"nothing done yet, with a rate":  {run.Run{Matched: 100, Rate: 60}, 0, 0, 100 * time.Second},
		"all handed off, with a rate":    {run.Run{Matched: 100, Documents: 80, Rate: 60, HandedOffAt: handedOff}, 40, 2, 20 * time.Second},
		"all done of what is known":      {run.Run{Matched: 100, AtLeast: true, Documents: 100}, 100, 2, 0},
		"more than the preview found":    {run.Run{Matched: 100, Documents: 120}, 100, 2, 10 * time.Second},
		"it is to be cancelled":          {run.Run{Matched: 100, Cancel: true, Rate: 60}, 20, 2, 0},
		"it has ended before it was all": {run.Run{Matched: 100, Status: run.RunCancelled}, 20, 2, 0},
	} {
		if c.run.Status == "" {
			c.run.Status = run.RunRunning
		}
		require.Equal(t, c.left, ops.RunProgress{Run: c.run, Done: c.done}.Left(c.perSecond), name)
	}
}

// Two environments share a database: what the other one's runs are is nobody's business here.
func TestAnotherEnvironmentsRunsAreNotThere(t *testing.T) {
	r := newRuns(t)
	r.fill(1)
	ours := r.start(replay()).Run
	r.handOff(ours, 2, 1, 2)
	const theirs = "replay-theirs"
	r.clock = r.clock.Add(time.Second)
	r.foreignRun(theirs, 30)
	// A database has them in the same table.
	require.NoError(t, r.journal.Start(t.Context(), ops.Run{ID: theirs, Kind: "replay", RequestedBy: "them", Why: "theirs"}, ops.Audit{Action: "x"}))
	require.NoError(t, r.books.StartRun(t.Context(), run.Run{ID: "alone", Kind: "reprocess", RequestedBy: "pat", Why: "x"}, run.Audit{}))
	before := r.books.Audits()

	words := ops.RunRequest{Run: theirs, By: "pat", Why: "x"}
	job := run.JobID("dev", theirs, 1)
	for name, ask := range map[string]func() error{
		"show":    func() error { _, err := r.ops.RunShow(t.Context(), theirs); return err },
		"cancel":  func() error { _, err := r.ops.RunCancel(t.Context(), words); return err },
		"resume":  func() error { _, err := r.ops.RunResume(t.Context(), words); return err },
		"items":   func() error { _, err := r.ops.RunItems(t.Context(), ops.ItemQuery{Run: theirs}); return err },
		"batches": func() error { _, err := r.ops.BatchList(t.Context(), ops.BatchQuery{Run: theirs}); return err },
		"batch":   func() error { _, err := r.ops.BatchShow(t.Context(), job); return err },
		"requeue of a batch": func() error {
			_, err := r.ops.BatchRequeue(t.Context(), ops.RequeueRequest{Batch: job, By: "pat", Why: "x"})
			return err
		},
		"requeue of a run": func() error {
			_, err := r.ops.BatchRequeue(t.Context(), ops.RequeueRequest{Run: theirs, By: "pat", Why: "x"})
			return err
		},
		"cancel of the older kind": func() error {
			_, err := r.ops.Cancel(t.Context(), ops.CancelRequest{Run: theirs, By: "pat", Why: "x"})
			return err
		},
		"cancel as if one process did it": func() error {
			_, err := r.ops.Cancel(t.Context(), ops.CancelRequest{Run: theirs, By: "pat", Why: "x", Gone: true})
			return err
		},
	} {
		require.Equal(t, ops.NotFound, refusal(ask()), name)
	}
	require.Equal(t, before, r.books.Audits(), "nothing was changed")

	all, err := r.ops.RunList(t.Context(), 1)
	require.NoError(t, err)
	require.Len(t, all, 1)
	require.Equal(t, "alone", all[0].ID, "a run that names no environment is everybody's")
	all, err = r.ops.RunList(t.Context(), 2)
	require.NoError(t, err)
	require.Equal(t, []any{2, ours}, []any{len(all), all[1].ID}, "behind another's")
	for _, status := range []run.Status{"", run.Failed} {
		jobs, err := r.ops.BatchList(t.Context(), ops.BatchQuery{Status: status, Limit: 1})
		require.NoError(t, err)
		require.Len(t, jobs, 1, "behind thirty of another's")
		require.Equal(t, []any{ours, 2}, []any{jobs[0].Run, jobs[0].Number})
	}
}

// foreignRun puts a run of the environment dev in, all batches of which have failed.
func (r *runs) foreignRun(id string, batches int) {
	r.t.Helper()
	ctx := r.t.Context()
	require.NoError(r.t, r.books.StartRun(ctx, run.Run{
		ID: id, SysName: "dev", Kind: run.Replay, Pattern: run.TwoPhase, RequestedBy: "them", Why: "theirs",
	}, run.Audit{}))
	row, ok, err := r.books.ClaimRun(ctx, id, 0, run.Worker{ID: "manager-theirs"}, time.Minute)
	require.NoError(r.t, err)
	require.True(r.t, ok)
	chunk := run.Chunk{First: 1, Initial: run.Queued}
	for b := range batches {
		chunk.Batches = append(chunk.Batches, []string{fmt.Sprintf("their-doc-%d", b)})
	}
	require.NoError(r.t, r.books.AddChunk(ctx, run.Lease{Run: id, Owner: "manager-theirs", Epoch: row.Epoch}, chunk))
	for b := range batches {
		claimed, err := r.books.ClaimJob(ctx, run.JobID("dev", id, b+1), run.Worker{ID: fmt.Sprintf("worker-theirs-%d", b)}, time.Minute, run.Audit{})
		require.NoError(r.t, err)
		require.NoError(r.t, r.books.FailJob(ctx, claimed.Hold, "x", run.Audit{}))
	}
}

func TestALongListOfDocumentsIsShownShort(t *testing.T) {
	r := newRuns(t)
	request := replay()
	request.All = false
	for i := range 500 {
		request.IDs = append(request.IDs, id(int64(i)))
	}
	p, err := r.ops.RunShow(t.Context(), r.start(request).Run)
	require.NoError(t, err)
	var f struct {
		IDs   []string
		Named int `json:"ids_named"`
	}
	require.NoError(t, json.Unmarshal(p.Filter, &f))
	require.Equal(t, request.IDs[:20], f.IDs)
	require.Equal(t, 500, f.Named)
}

func TestCancelAndResume(t *testing.T) {
	r := newRuns(t)
	r.fill(1)
	begun := r.start(replay()).Run
	words := ops.RunRequest{Run: begun, By: "pat", Why: "wrong filter"}
	_, err := r.ops.RunResume(t.Context(), words)
	require.Equal(t, ops.NotFound, refusal(err))
	require.ErrorContains(t, err, "has failed or was cancelled")

	p, err := r.ops.RunCancel(t.Context(), words)
	require.NoError(t, err)
	require.True(t, p.Cancel)
	entries := r.audited(run.CodeRunCancel)
	require.Len(t, entries, 1)
	require.Equal(t, []any{"WARN", "pat", "wrong filter", begun}, []any{entries[0].Level, entries[0].By, entries[0].Why, entries[0].Run})
	r.complete(begun)
	_, err = r.ops.RunCancel(t.Context(), words)
	require.Equal(t, ops.NotFound, refusal(err))
	require.ErrorContains(t, err, "is running")
	require.Len(t, r.audited(run.CodeRunCancel), 1, "what was refused is not audited")

	p, err = r.ops.RunResume(t.Context(), words)
	require.NoError(t, err)
	require.Equal(t, []any{run.RunRunning, 1, ""}, []any{p.Status, p.Epoch, p.Note})
	require.Len(t, r.audited(run.CodeRunResume), 1)
	messages := r.queue.Messages()
	require.Len(t, messages, 2, "a manager is told")
	notice, err := run.ReadNotice(messages[1].Body, run.RunMessage)
	require.NoError(t, err)
	require.Equal(t, 1, notice.RunEpoch, "of the epoch that it may claim")

	for _, bad := range []ops.RunRequest{{By: "pat", Why: "x"}, {Run: begun, Why: "x"}, {Run: begun, By: "pat"}} {
		_, err = r.ops.RunCancel(t.Context(), bad)
		require.Equal(t, ops.Usage, refusal(err))
	}
}

func TestAResumedRunThatWasHandedOffLeavesTheRestToTheTimer(t *testing.T) {
	r := newRuns(t)
	r.fill(1)
	begun := r.start(replay()).Run
	lease, ok, err := r.books.ClaimRun(t.Context(), begun, 0, run.Worker{ID: "manager-1"}, time.Minute)
	require.NoError(t, err)
	require.True(t, ok)
	hold := run.Lease{Run: begun, Owner: "manager-1", Epoch: lease.Epoch}
	require.NoError(t, r.books.AddChunk(t.Context(), hold, run.Chunk{First: 1, Initial: run.Queued, Batches: [][]string{{"a"}}}))
	require.NoError(t, r.books.EndHandOff(t.Context(), hold, run.Audit{}))
	words := ops.RunRequest{Run: begun, By: "pat", Why: "x"}
	_, err = r.ops.RunCancel(t.Context(), words)
	require.NoError(t, err)
	r.complete(begun)
	p, err := r.ops.RunResume(t.Context(), words)
	require.NoError(t, err)
	require.Contains(t, p.Note, "the timer sends its batches again")
	require.Equal(t, map[run.Status]int{run.PendingRetry: 1}, p.Stats.Jobs)
	require.Equal(t, 1, r.queue.Sends(), "no manager is needed")
}

func TestBatchesAreListedFailedOnesFirst(t *testing.T) {
	r := newRuns(t)
	r.fill(1)
	begun := r.start(replay()).Run
	r.handOff(begun, 5, 2, 3, 5)
	numbers := func(q ops.BatchQuery) (found []int) {
		jobs, err := r.ops.BatchList(t.Context(), q)
		require.NoError(t, err)
		for _, j := range jobs {
			found = append(found, j.Number)
		}
		return found
	}
	require.Equal(t, []int{3, 5, 1, 2, 4}, numbers(ops.BatchQuery{Run: begun}))
	require.Equal(t, []int{3, 5, 1}, numbers(ops.BatchQuery{Run: begun, Limit: 3}))
	require.Equal(t, []int{3}, numbers(ops.BatchQuery{Run: begun, Limit: 1}))
	require.Equal(t, []int{1, 2, 4}, numbers(ops.BatchQuery{Run: begun, Status: run.Completed}))
	require.Equal(t, []int{3, 5}, numbers(ops.BatchQuery{Run: begun, Status: run.Failed}))
	require.Equal(t, []int{5, 4, 3, 2, 1}, numbers(ops.BatchQuery{}), "of all runs, the latest")

	_, err := r.ops.BatchList(t.Context(), ops.BatchQuery{Run: "nobody"})
	require.Equal(t, ops.NotFound, refusal(err))
	_, err = r.ops.BatchList(t.Context(), ops.BatchQuery{Status: "done"})
	require.Equal(t, ops.Usage, refusal(err))
	require.ErrorContains(t, err, "status: expected one of pending_queue, pending_retry, queued, processing, completed, failed")
	_, err = r.ops.BatchList(t.Context(), ops.BatchQuery{Limit: 1001})
	require.Equal(t, ops.Usage, refusal(err))
}

func TestABatchHasTwoNames(t *testing.T) {
	r := newRuns(t)
	r.fill(1)
	begun := r.start(replay()).Run
	r.handOff(begun, 2, 2, 2)
	byNumber, err := r.ops.BatchShow(t.Context(), begun+"/2")
	require.NoError(t, err)
	require.Equal(t, []any{run.Failed, "Max queue retries exceeded", 2}, []any{byNumber.Status, byNumber.Error, byNumber.Number})
	require.NotNil(t, byNumber.Errors)
	byID, err := r.ops.BatchShow(t.Context(), byNumber.ID)
	require.NoError(t, err)
	require.Equal(t, byNumber, byID)
	for name, want := range map[string]ops.Refusal{begun + "/3": ops.NotFound, "nobody": ops.NotFound, begun + "/x": ops.Usage, begun + "/0": ops.Usage, "": ops.Usage, "/1": ops.Usage} {
		_, err := r.ops.BatchShow(t.Context(), name)
		require.Equal(t, want, refusal(err), name)
	}
}

func TestRequeue(t *testing.T) {
	r := newRuns(t)
	r.fill(1)
	begun := r.start(replay()).Run
	r.handOff(begun, 4, 2, 2, 3)
	r.complete(begun)
	ask := func(q ops.RequeueRequest) (ops.Requeued, error) {
		q.By, q.Why = "pat", "mended"
		return r.ops.BatchRequeue(t.Context(), q)
	}
	for name, c := range map[string]struct {
		request ops.RequeueRequest
		refusal ops.Refusal
		says    string
	}{
		"neither":         {ops.RequeueRequest{}, ops.Usage, "batch: expected a batch, or a run, not both"},
		"both":            {ops.RequeueRequest{Batch: begun + "/2", Run: begun}, ops.Usage, "not both"},
		"no such batch":   {ops.RequeueRequest{Batch: begun + "/9"}, ops.NotFound, "no batch"},
		"no batch's name": {ops.RequeueRequest{Batch: "a/b"}, ops.Usage, "RUN/NUMBER"},
		"no such run":     {ops.RequeueRequest{Run: "nobody"}, ops.NotFound, `no run "nobody"`},
		"no run's id":     {ops.RequeueRequest{Run: "a b"}, ops.Usage, "run: expected"},
		"a completed one": {ops.RequeueRequest{Batch: begun + "/1"}, ops.Conflict, "the batch is completed: only one that has failed"},
	} {
		_, err := ask(c.request)
		require.Equal(t, c.refusal, refusal(err), "%s: %v", name, err)
		require.ErrorContains(t, err, c.says, name)
	}
	_, err := r.ops.BatchRequeue(t.Context(), ops.RequeueRequest{Batch: begun + "/2", By: "pat"})
	require.Equal(t, ops.Usage, refusal(err), "without a reason")
	require.Empty(t, r.audited(run.CodeBatchRequeue))

	done, err := ask(ops.RequeueRequest{Batch: begun + "/2"})
	require.NoError(t, err)
	require.Equal(t, ops.Requeued{Batches: 1}, done)
	entry := r.audited(run.CodeBatchRequeue)[0]
	require.Equal(t, []any{begun, run.JobID("web", begun, 2), "pat", "mended"}, []any{entry.Run, entry.Job, entry.By, entry.Why})
	p, err := r.ops.RunShow(t.Context(), begun)
	require.NoError(t, err)
	require.Equal(t, run.RunRunning, p.Status, "a completed run runs again")

	done, err = ask(ops.RequeueRequest{Run: begun})
	require.NoError(t, err)
	require.Equal(t, 1, done.Batches)
	_, err = ask(ops.RequeueRequest{Run: begun})
	require.Equal(t, ops.Conflict, refusal(err))
	require.ErrorContains(t, err, "has failed")

	_, err = r.ops.RunCancel(t.Context(), ops.RunRequest{Run: begun, By: "pat", Why: "x"})
	require.NoError(t, err)
	r.complete(begun)
	_, err = ask(ops.RequeueRequest{Run: begun})
	require.Equal(t, ops.Conflict, refusal(err))
	require.ErrorContains(t, err, "its run is cancelled: `run resume "+begun+"` has it go on")
}

func TestARequeueThatIsInterruptedSaysHowFarItCame(t *testing.T) {
	r := newRuns(t)
	r.fill(1)
	begun := r.start(replay()).Run
	r.handOff(begun, 3, 1, 1, 2, 3)
	r.books.fails, r.books.requeues = down(), 2
	done, err := r.ops.BatchRequeue(t.Context(), ops.RequeueRequest{Run: begun, By: "pat", Why: "x"})
	require.NoError(t, err, "what was done is told")
	require.Equal(t, 2, done.Batches)
	require.Contains(t, done.Note, "the others not, ask again")
	_, err = r.ops.BatchRequeue(t.Context(), ops.RequeueRequest{Run: begun, By: "pat", Why: "x"})
	require.ErrorContains(t, err, "nothing was done")
}

func TestARequeueEndsBeforeItsCallerGivesUp(t *testing.T) {
	r := newRuns(t)
	r.fill(1)
	begun := r.start(replay()).Run
	r.handOff(begun, 3, 1, 1, 2, 3)
	r.books.requeued = func() { r.clock = r.clock.Add(61 * time.Second) }
	done, err := r.ops.BatchRequeue(t.Context(), ops.RequeueRequest{Run: begun, By: "pat", Why: "x"})
	require.NoError(t, err)
	require.Equal(t, 2, done.Batches)
	require.Contains(t, done.Note, "ask again")
	done, err = r.ops.BatchRequeue(t.Context(), ops.RequeueRequest{Run: begun, By: "pat", Why: "x"})
	require.NoError(t, err)
	require.Equal(t, ops.Requeued{Batches: 1}, done, "it goes on with the others")
}

func TestTheReceiptOfARunComesInPages(t *testing.T) {
	r := newRuns(t)
	r.fill(1)
	begun := r.start(replay()).Run
	r.handOff(begun, 2, 5, 2)
	seen := map[string]run.ItemOutcome{}
	for after, pages := "", 0; ; pages++ {
		require.Less(t, pages, 10)
		items, err := r.ops.RunItems(t.Context(), ops.ItemQuery{Run: begun, After: after, Limit: 3})
		require.NoError(t, err)
		if len(items) == 0 {
			break
		}
		for _, i := range items {
			require.NotContains(t, seen, i.Document)
			seen[i.Document] = i
		}
		after = items[len(items)-1].Document
	}
	require.Len(t, seen, 10)
	require.Equal(t, run.ItemOutcome{Document: "doc-1-0", Outcome: run.DocCommitted, Number: 1}, seen["doc-1-0"])
	require.Equal(t, run.ItemOutcome{Document: "doc-2-0", Number: 2}, seen["doc-2-0"])
	_, err := r.ops.RunItems(t.Context(), ops.ItemQuery{Run: "nobody"})
	require.Equal(t, ops.NotFound, refusal(err))
	_, err = r.ops.RunItems(t.Context(), ops.ItemQuery{Run: begun, Limit: 1001})
	require.Equal(t, ops.Usage, refusal(err))
	_, err = r.ops.RunItems(t.Context(), ops.ItemQuery{})
	require.Equal(t, ops.Usage, refusal(err))
}

func TestReports(t *testing.T) {
	r := newRuns(t)
	table, err := r.ops.Report(t.Context(), "runs")
	require.NoError(t, err)
	require.Equal(t, run.Table{Columns: []string{"run"}, Rows: [][]any{{"a"}}}, table)
	_, err = r.ops.Report(t.Context(), "sales")
	require.Equal(t, ops.NotFound, refusal(err))
	require.ErrorContains(t, err, `there is no report "sales"; there are runs`)
	r.open(fault.Infrastructure, "connection")
	names, err := r.ops.ReportNames(t.Context())
	require.NoError(t, err, "names need no SQL")
	require.Equal(t, []run.ReportName{{Name: "runs", Meaning: "the latest"}}, names)
	_, err = r.ops.Report(t.Context(), "runs")
	require.Equal(t, "gate_open", fault.CodeOf(err))
}

func TestNoRunOfManyWorkersIsGone(t *testing.T) {
	r := newRuns(t)
	r.fill(1)
	begun := r.start(replay()).Run
	_, err := r.ops.Cancel(t.Context(), ops.CancelRequest{Run: begun, By: "pat", Why: "x", Gone: true})
	require.Equal(t, ops.Conflict, refusal(err))
	require.ErrorContains(t, err, "`run cancel` ends it")
	require.Empty(t, r.audits())
}

// What is refused says nothing of whether SQL answers: the gate takes no harm from it.
func TestARefusalIsAnAnswer(t *testing.T) {
	r := newRuns(t)
	for range 10 {
		_, err := r.ops.RunShow(t.Context(), "nobody")
		require.Equal(t, ops.NotFound, refusal(err))
		_, err = r.ops.BatchShow(t.Context(), "nobody")
		require.Equal(t, ops.NotFound, refusal(err))
	}
	require.False(t, r.gate.View(t.Context()).State().Open())
}
