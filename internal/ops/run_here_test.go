package ops_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"sqlwriter/internal/fault"
	"sqlwriter/internal/invoice"
	"sqlwriter/internal/ops"
	"sqlwriter/internal/run"
	"sqlwriter/test/inmem"
)

// Somebody waits for a few documents: they have ended when the request is answered, with Service Bus or without it.
// More are given to the workers.
func TestARetryOfFewDocumentsIsExecutedHere(t *testing.T) {
	for _, many := range []int{100, 101} {
		r := newRuns(t)
		r.fill(many)
		res, err := r.ops.RetryDocuments(by(t, "pat"),
			ops.RetryRequest{DocumentFilter: ops.DocumentFilter{Status: invoice.Failed}, Rate: 6000, Why: "mended"})
		require.NoError(t, err)
		row, _, err := r.store.Run(t.Context(), res.Run)
		require.NoError(t, err)
		require.Equal(t, []any{6000, many}, []any{row.Rate, row.Matched})
		detail := string(r.audited(run.CodeRunStart)[0].Detail)
		if many == 101 {
			require.Nil(t, res.Progress)
			require.Equal(t, 1, r.queue.Sends())
			require.Contains(t, detail, `"here":false`)
			continue
		}
		require.Equal(t, []any{run.RunCompleted, 100}, []any{res.Progress.Status, res.Progress.Done})
		require.Zero(t, r.queue.Sends())
		require.Contains(t, detail, `"here":true`)
	}
}

// Service Bus is away: a run is there all the same, and the app that was asked executes it.
func TestARunIsExecutedHereWhileTheQueueIsAway(t *testing.T) {
	r := newRuns(t)
	r.queue.Always(inmem.QueueDown())
	r.sink.AddLines(1, 2, 3)
	r.put(result(1, "a", failed(1, fault.Document, "2628")), result(2, "b", failed(2, fault.Document, "547")),
		result(3, tooLong(), failed(3, fault.Document, "2628")))
	res := r.start(replayAll())
	require.Equal(t,
		"its message could not be sent: inmem: send: infrastructure down: the queue cannot be reached", res.Note)
	require.Equal(t, run.RunCompletedWithFailures, res.Progress.Status)
	require.Equal(t, map[invoice.Outcome]int{invoice.OutcomeApplied: 2, invoice.OutcomeRetryScheduled: 1},
		res.Progress.Stats.Outcomes)

	for _, matched := range []int{1, 101} { // and a retry, whatever its size
		status := invoice.RetryScheduled
		if matched > 1 {
			r.fill(matched)
			status = invoice.Failed
		}
		retried, err := r.ops.RetryDocuments(by(t, "pat"),
			ops.RetryRequest{DocumentFilter: ops.DocumentFilter{Status: status}, Why: "mended"})
		require.NoError(t, err)
		require.NotEqual(t, run.RunRunning, retried.Progress.Status)
		require.Equal(t, []any{matched, matched}, []any{retried.Matched, retried.Progress.Done})
	}
}

// The process of a run may have been killed while Service Bus is away: the run is running, and nobody does it.
func TestARunningRunIsResumed(t *testing.T) {
	r := newRuns(t)
	r.sink.AddLines(1)
	r.put(result(1, "a", failed(1, fault.Document, "2628")))
	id := r.start(replayAll()).Run
	r.queue.Always(inmem.QueueDown())
	words := ops.RunRequest{Run: id, Why: "its process was killed"}
	_, claimed, err := r.store.ClaimRun(t.Context(), id, 0, -1, run.Worker{ID: "manager-other"}, 0)
	require.NoError(t, err)
	require.True(t, claimed)
	_, err = r.ops.RunResume(by(t, "kim"), words)
	require.Equal(t, ops.Conflict, refusal(err))
	require.ErrorContains(t, err, "manager-other has it, last heard 0s ago")
	require.Empty(t, r.audited(run.CodeRunResume))

	r.clock = r.clock.Add(3 * 60e9)
	p := must(r.ops.RunResume(by(t, "kim"), words))(t)
	require.Equal(t, run.RunCompleted, p.Status)
	require.Contains(t, p.Note, "its message could not be sent")
	entries := must(r.ops.Audits(t.Context(), ops.AuditQuery{Run: id, Action: run.CodeRunResume}))(t)
	require.Len(t, entries.Audits, 1)
	_, err = r.ops.RunResume(by(t, "kim"), words)
	require.Equal(t, ops.NotFound, refusal(err), "it has ended")
}

// Nobody waits for the end of a pause: the run is there, and says so.
func TestAPausedFlowLeavesTheRun(t *testing.T) {
	r := newRuns(t)
	r.sink.AddLines(1)
	r.put(result(1, "a", failed(1, fault.Document, "2628")))
	_, err := r.ops.Pause(by(t, "kim"), ops.FlowRequest{Why: "index rebuild"})
	require.NoError(t, err)
	began := r.clock
	res := must(r.ops.RetryDocuments(by(t, "kim"), ops.RetryRequest{IDs: []string{id(1)}, Why: "x"}))(t)
	require.Equal(t, began, r.clock)
	require.Equal(t, run.RunRunning, res.Progress.Status)
	require.Contains(t, res.Note, "the run is not over: the flow is paused by kim")
	_, err = r.ops.Resume(by(t, "kim"), ops.ResumeFlow{Why: "it is built"})
	require.NoError(t, err)
	r.queue.Always(inmem.QueueDown())
	p := must(r.ops.RunResume(by(t, "kim"), ops.RunRequest{Run: res.Run, Why: "x"}))(t)
	require.Equal(t, run.RunCompleted, p.Status)
}

// SQL fails in the middle, and the flow is stopped. What was not tried stays failed, and the run says how it goes on.
func TestAnOutageInTheMiddleLeavesTheRun(t *testing.T) {
	r := newRuns(t)
	r.fill(150)
	r.queue.Always(inmem.QueueDown())
	r.sink.applied = func() { r.sink.fails = fault.New(fault.Quota, "test: apply", "9002", "the log is full") }
	started := must(r.ops.StartRun(until{by(t, "kim"), r.clock.Add(210 * time.Second)}, replayAll()))(t)
	require.NotNil(t, started.Progress, "the state of a run that was executed is read whatever the breaker says")
	require.Equal(t, []any{run.RunRunning, 100}, []any{started.Progress.Status, started.Progress.Done})
	require.Contains(t, started.Note, "quota 9002")
	require.Contains(t, started.Note, "`run resume "+started.Run+" --why TEXT` goes on with it")
	left := 0
	for line := range int64(150) {
		if s := r.state(1 + line); s.Status == invoice.Failed {
			left++
			require.Zero(t, s.ReprocessCount)
		}
	}
	require.Equal(t, 50, left)
	r.sink.fails, r.sink.applied = nil, nil
	r.clock = r.clock.Add(10 * time.Minute)
	r.queue.Always(inmem.QueueDown())
	p := must(r.ops.RunResume(by(t, "pat"), ops.RunRequest{Run: started.Run, Why: "made room"}))(t)
	require.Equal(t, []any{run.RunCompleted, 150}, []any{p.Status, p.Done})
}
