package ops_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"sqlwriter/internal/ops"
	"sqlwriter/internal/run"
	"sqlwriter/test/inmem"
)

func TestBatchesAreListedFailedOnesFirst(t *testing.T) {
	r := newRuns(t)
	r.fill(1)
	begun := r.start(replayAll()).Run
	r.handOff(begun, 5, 2, 3, 5)
	numbers := func(q ops.BatchQuery) (found []int) {
		batches := must(r.ops.BatchList(t.Context(), q))(t)
		for _, batch := range batches.Batches {
			found = append(found, batch.Number)
		}
		return found
	}
	require.Equal(t, []int{3, 5, 1, 2, 4}, numbers(ops.BatchQuery{Run: begun}))
	require.Equal(t, []int{3, 5, 1}, numbers(ops.BatchQuery{Run: begun, Limit: 3}))
	require.Equal(t, []int{3}, numbers(ops.BatchQuery{Run: begun, Limit: 1}))
	require.Equal(t, []int{1, 2, 4}, numbers(ops.BatchQuery{Run: begun, Status: run.Completed}))
	require.Equal(t, []int{3, 5}, numbers(ops.BatchQuery{Run: begun, Status: run.Failed}))
	require.Equal(t, []int{5, 4, 3, 2, 1}, numbers(ops.BatchQuery{}), "of all runs, the latest")
	for _, q := range []ops.BatchQuery{{Run: begun}, {}, {Run: begun, Status: run.Failed}, {Status: run.Completed}} {
		want := numbers(q)
		for q.Limit = 1; q.Limit < 7; q.Limit++ {
			var found []int
			for pages := 0; ; pages++ {
				require.Less(t, pages, 7)
				found = append(found, numbers(q)...)
				page := must(r.ops.BatchList(t.Context(), q))(t)
				if q.Page = page.Next; q.Page == "" {
					break
				}
			}
			require.Equal(t, want, found, "pages of %d: each batch once", q.Limit)
		}
	}
	for _, page := range []string{
		"x", "0", "0/x", "-1/" + run.BatchID("web", begun, 1), "2/" + run.BatchID("web", begun, 1),
	} {
		_, err := r.ops.BatchList(t.Context(), ops.BatchQuery{Run: begun, Page: page})
		require.Equal(t, ops.Usage, refusal(err), page)
	}

	_, err := r.ops.BatchList(t.Context(), ops.BatchQuery{Run: "nobody"})
	require.Equal(t, ops.NotFound, refusal(err))
	_, err = r.ops.BatchList(t.Context(), ops.BatchQuery{Status: "done"})
	require.Equal(t, ops.Usage, refusal(err))
	require.ErrorContains(t, err,
		"status: expected one of pending_queue, pending_retry, queued, processing, completed, failed")
	_, err = r.ops.BatchList(t.Context(), ops.BatchQuery{Limit: 1001})
	require.Equal(t, ops.Usage, refusal(err))
}

func TestABatchHasTwoNames(t *testing.T) {
	r := newRuns(t)
	r.fill(1)
	begun := r.start(replayAll()).Run
	r.handOff(begun, 2, 2, 2)
	byNumber := must(r.ops.BatchList(t.Context(), ops.BatchQuery{Batch: begun + "/2"}))(t)
	require.Len(t, byNumber.Batches, 1)
	b := byNumber.Batches[0]
	require.Equal(t, []any{run.Failed, "Max queue retries exceeded", 2}, []any{b.Status, b.Error, b.Number})
	byID := must(r.ops.BatchList(t.Context(), ops.BatchQuery{Batch: b.ID}))(t)
	require.Equal(t, byNumber, byID)
	for name, want := range map[string]ops.Refusal{
		begun + "/3": ops.NotFound, strings.Repeat("a", 64): ops.NotFound, "nobody": ops.Usage, begun: ops.Usage,
		begun + "/x": ops.Usage, begun + "/0": ops.Usage, "/1": ops.Usage,
	} {
		_, err := r.ops.BatchList(t.Context(), ops.BatchQuery{Batch: name})
		require.Equal(t, want, refusal(err), name)
	}
	_, err := r.ops.BatchList(t.Context(), ops.BatchQuery{Batch: begun + "/2", Run: begun})
	require.Equal(t, ops.Usage, refusal(err))
}

func TestRequeue(t *testing.T) {
	r := newRuns(t)
	r.fill(1)
	begun := r.start(replayAll()).Run
	r.handOff(begun, 4, 2, 2, 3)
	r.complete(begun)
	ask := func(q ops.RequeueRequest) (ops.Requeued, error) {
		q.Why = "mended"
		return r.ops.BatchRequeue(by(t, "pat"), q)
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
		"a completed one": {
			ops.RequeueRequest{Batch: begun + "/1"}, ops.Conflict, "the batch is completed: only one that has failed",
		},
	} {
		_, err := ask(c.request)
		require.Equal(t, c.refusal, refusal(err), "%s: %v", name, err)
		require.ErrorContains(t, err, c.says, name)
	}
	_, err := r.ops.BatchRequeue(by(t, "pat"), ops.RequeueRequest{Batch: begun + "/2"})
	require.Equal(t, ops.Usage, refusal(err), "without a reason")
	require.Empty(t, r.audited(run.CodeBatchRequeue))

	done := must(ask(ops.RequeueRequest{Batch: begun + "/2"}))(t)
	require.Equal(t, ops.Requeued{Batches: 1}, done)
	entry := r.audited(run.CodeBatchRequeue)[0]
	require.Equal(t, []any{begun, run.BatchID("web", begun, 2), "pat", "mended"},
		[]any{entry.Run, entry.Batch, entry.By, entry.Why})
	p := must(r.ops.RunShow(t.Context(), begun))(t)
	require.Equal(t, run.RunRunning, p.Status, "a completed run runs again")

	done = must(ask(ops.RequeueRequest{Run: begun}))(t)
	require.Equal(t, 1, done.Batches)
	_, err = ask(ops.RequeueRequest{Run: begun})
	require.Equal(t, ops.Conflict, refusal(err))
	require.ErrorContains(t, err, "has failed")

	_, err = r.ops.RunCancel(by(t, "pat"), ops.RunRequest{Run: begun, Why: "x"})
	require.NoError(t, err)
	r.complete(begun)
	_, err = ask(ops.RequeueRequest{Run: begun})
	require.Equal(t, ops.Conflict, refusal(err))
	require.ErrorContains(t, err, "its run is cancelled: `run resume "+begun+"` continues it")
}

func TestARequeueThatIsInterruptedSaysHowFarItCame(t *testing.T) {
	r := newRuns(t)
	r.fill(1)
	begun := r.start(replayAll()).Run
	r.handOff(begun, 3, 1, 1, 2, 3)
	r.runStore.fails, r.runStore.requeues = down(), 2
	done, err := r.ops.BatchRequeue(by(t, "pat"), ops.RequeueRequest{Run: begun, Why: "x"})
	require.NoError(t, err, "the reply says how many were requeued")
	require.Equal(t, 2, done.Batches)
	require.Contains(t, done.Note, "ask again for the others")
	_, err = r.ops.BatchRequeue(by(t, "pat"), ops.RequeueRequest{Run: begun, Why: "x"})
	require.ErrorContains(t, err, "nothing was done")
}

func TestARequeueEndsBeforeItsCallerGivesUp(t *testing.T) {
	r := newRuns(t)
	r.fill(1)
	begun := r.start(replayAll()).Run
	r.handOff(begun, 3, 1, 1, 2, 3)
	sent := r.queue.Sends()
	r.runStore.requeued = func() { r.clock = r.clock.Add(61 * time.Second) }
	done, err := r.ops.BatchRequeue(by(t, "pat"), ops.RequeueRequest{Run: begun, Why: "x"})
	require.NoError(t, err)
	require.Equal(t, 2, done.Batches)
	require.Contains(t, done.Note, "ask again")
	require.Equal(t, sent+1, r.queue.Sends(), "a manager sends those that are put back")
	r.queue.Always(inmem.QueueDown())
	done = must(r.ops.BatchRequeue(by(t, "pat"), ops.RequeueRequest{Run: begun, Why: "x"}))(t)
	require.Equal(t, 1, done.Batches, "it goes on with the others")
	require.Contains(t, done.Note, "the timer goes on with the run: its message could not be sent")
}
