package ops_test

import (
	"encoding/json"
	"fmt"
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

func TestARunIsShownWithItsNumbers(t *testing.T) {
	r := newRuns(t)
	r.fill(1)
	begun := r.start(replayAll()).Run
	r.handOff(begun, 3, 4, 2)
	r.clock = r.clock.Add(16 * time.Second)
	p, err := r.ops.RunShow(t.Context(), begun)
	require.NoError(t, err)
	require.Equal(t, []any{8, 12, 0.5, int64(8)}, []any{p.Done, p.Documents, p.PerSecond, p.LeftSeconds})
	require.Equal(t, map[run.BatchStatus]int{run.Failed: 1, run.Completed: 2}, p.Stats.Batches)
	require.Equal(t, map[invoice.Outcome]int{invoice.OutcomeApplied: 8, "": 4}, p.Stats.Outcomes)
	require.Equal(t, "2025-12-18T10:00:00-06:00", p.StartedAt.Format(time.RFC3339), "in the deployment's zone")

	r.complete(begun)
	p = must(r.ops.RunShow(t.Context(), begun))(t)
	require.Equal(t, run.RunCompletedWithFailures, p.Status)
	require.Zero(t, p.LeftSeconds)

	all := must(r.ops.RunList(t.Context(), ops.RunQuery{}))(t)
	require.Equal(t,
		[]ops.RunSummary{
			{Run: p.Run, State: ops.RunEnded, Says: "completed with failures", Batches: p.Stats.Batches},
		}, all.Runs)

	_, err = r.ops.RunShow(t.Context(), "nobody")
	require.Equal(t, ops.NotFound, refusal(err))
	for _, id := range []string{"", "a b", strings.Repeat("x", 65)} {
		_, err = r.ops.RunShow(t.Context(), id)
		require.Equal(t, ops.Usage, refusal(err))
	}
	for _, limit := range []int{-1, 1001} {
		_, err = r.ops.RunList(t.Context(), ops.RunQuery{Limit: limit})
		require.Equal(t, ops.Usage, refusal(err))
	}
}

// 511 documents match, 120 a minute are handed off, and the first 20 are done.
func TestProgressIsOfWhatThePreviewFound(t *testing.T) {
	r := newRuns(t)
	r.search.invented = 511
	request := replayAll()
	request.Rate = 120
	begun := r.start(request).Run
	row, ok, err := r.runStore.ClaimRun(t.Context(), begun, 0, -1, run.Worker{ID: "manager-1"}, time.Minute)
	require.NoError(t, err)
	require.True(t, ok)
	lease := run.RunLease{Run: begun, Owner: "manager-1", Epoch: row.Epoch}
	r.addAndDo(lease, 1, 20)
	r.clock = r.clock.Add(5 * time.Second) // 4 a second, faster than the rate
	p := must(r.ops.RunShow(t.Context(), begun))(t)
	known, more := p.Known()
	require.Equal(t, []any{20, 511, false, int64(245)}, []any{p.Done, known, more, p.LeftSeconds}, "491 at 2 a second")

	r.clock = r.clock.Add(95 * time.Second) // 0.2 a second: the workers are slower than the rate
	p = must(r.ops.RunShow(t.Context(), begun))(t)
	require.Equal(t, int64(2455), p.LeftSeconds)

	require.NoError(t, r.runStore.EndHandOff(t.Context(), lease, run.Audit{}))
	p = must(r.ops.RunShow(t.Context(), begun))(t)
	known, more = p.Known()
	require.Equal(t, []any{20, false, int64(0)}, []any{known, more, p.LeftSeconds}, "the others have changed since")
}

// addAndDo hands one batch off and completes it.
func (r *runs) addAndDo(l run.RunLease, number, documents int) {
	r.t.Helper()
	var ids []string
	for i := range documents {
		ids = append(ids, fmt.Sprintf("doc-%d-%d", number, i))
	}
	ctx := r.t.Context()
	require.NoError(r.t, r.runStore.AddChunk(ctx, l, run.Chunk{First: number, Batches: [][]string{ids}}))
	claimed, err := r.runStore.ClaimBatch(ctx, run.BatchID("web", l.Run, number), run.Ticket{},
		run.Worker{ID: fmt.Sprintf("worker-%d", number)}, time.Minute, run.Audit{})
	require.NoError(r.t, err)
	var outcomes []run.ItemOutcome
	for _, document := range claimed.Open {
		outcomes = append(outcomes, run.ItemOutcome{Document: document, Outcome: invoice.OutcomeApplied})
	}
	require.NoError(r.t, r.runStore.SaveOutcomes(ctx, claimed.Lease, outcomes, nil))
	_, err = r.runStore.FinishBatch(ctx, claimed.Lease, func(run.BatchStats) run.Audit { return run.Audit{} })
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
		"at the speed":                  {run.Run{Matched: 100}, 20, 2, 40 * time.Second},
		"at the rate":                   {run.Run{Matched: 100, Documents: 40, Rate: 60}, 20, 1000, time.Minute},
		"slower than the rate":          {run.Run{Matched: 100, Documents: 40, Rate: 6000}, 20, 1, 80 * time.Second},
		"nothing done yet":              {run.Run{Matched: 100}, 0, 0, 0},
		"nothing done yet, with a rate": {run.Run{Matched: 100, Rate: 60}, 0, 0, 100 * time.Second},
		"all handed off, with a rate": {
			run.Run{Matched: 100, Documents: 80, Rate: 60, HandedOffAt: handedOff}, 40, 2, 20 * time.Second,
		},
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

// Two environments share a database.
func TestAnotherEnvironmentsRunsAreNotThere(t *testing.T) {
	r := newRuns(t)
	r.fill(1)
	ours := r.start(replayAll()).Run
	r.handOff(ours, 2, 1, 2)
	const theirs = "replay-theirs"
	r.clock = r.clock.Add(time.Second)
	r.foreignRun(theirs, 30)
	before := r.runStore.Audits()

	words := ops.RunRequest{Run: theirs, Why: "x"}
	batch := run.BatchID("dev", theirs, 1)
	for name, ask := range map[string]func() error{
		"show":    func() error { _, err := r.ops.RunShow(t.Context(), theirs); return err },
		"cancel":  func() error { _, err := r.ops.RunCancel(by(t, "pat"), words); return err },
		"resume":  func() error { return errOf(r.ops.RunResume(by(t, "pat"), words)) },
		"items":   func() error { _, err := r.ops.RunItems(t.Context(), ops.ItemQuery{Run: theirs}); return err },
		"batches": func() error { _, err := r.ops.BatchList(t.Context(), ops.BatchQuery{Run: theirs}); return err },
		"batch":   func() error { _, err := r.ops.BatchList(t.Context(), ops.BatchQuery{Batch: batch}); return err },
		"requeue of a batch": func() error {
			_, err := r.ops.BatchRequeue(by(t, "pat"), ops.RequeueRequest{Batch: batch, Why: "x"})
			return err
		},
		"requeue of a run": func() error {
			_, err := r.ops.BatchRequeue(by(t, "pat"), ops.RequeueRequest{Run: theirs, Why: "x"})
			return err
		},
	} {
		require.Equal(t, ops.NotFound, refusal(ask()), name)
	}
	require.Equal(t, before, r.runStore.Audits(), "nothing was changed")

	all := must(r.ops.RunList(t.Context(), ops.RunQuery{Limit: 1}))(t)
	require.Len(t, all.Runs, 1)
	require.Equal(t, ours, all.Runs[0].ID, "behind another's")
	for _, status := range []run.BatchStatus{"", run.Failed} {
		batches := must(r.ops.BatchList(t.Context(), ops.BatchQuery{Status: status, Limit: 1}))(t)
		require.Len(t, batches.Batches, 1, "behind thirty of another's")
		require.Equal(t, []any{ours, 2}, []any{batches.Batches[0].Run, batches.Batches[0].Number})
	}
}

// foreignRun adds a run of the environment dev whose batches have failed.
func (r *runs) foreignRun(id string, batches int) {
	r.t.Helper()
	ctx := r.t.Context()
	require.NoError(r.t, r.runStore.StartRun(ctx, run.Run{
		ID: id, SysName: "dev", Kind: run.Replay, RequestedBy: "them", Why: "theirs",
	}, run.Audit{}))
	row, ok, err := r.runStore.ClaimRun(ctx, id, 0, -1, run.Worker{ID: "manager-theirs"}, time.Minute)
	require.NoError(r.t, err)
	require.True(r.t, ok)
	chunk := run.Chunk{First: 1}
	for b := range batches {
		chunk.Batches = append(chunk.Batches, []string{fmt.Sprintf("their-doc-%d", b)})
	}
	require.NoError(r.t,
		r.runStore.AddChunk(ctx, run.RunLease{Run: id, Owner: "manager-theirs", Epoch: row.Epoch}, chunk))
	for b := range batches {
		claimed, err := r.runStore.For("dev").ClaimBatch(ctx, run.BatchID("dev", id, b+1), run.Ticket{},
			run.Worker{ID: fmt.Sprintf("worker-theirs-%d", b)}, time.Minute, run.Audit{})
		require.NoError(r.t, err)
		require.NoError(r.t, r.runStore.FailBatch(ctx, claimed.Lease, "x", run.Audit{}))
	}
}

func TestALongListOfDocumentsIsShownShort(t *testing.T) {
	r := newRuns(t)
	request := replayAll()
	request.All = false
	for i := range 500 {
		request.IDs = append(request.IDs, id(int64(i)))
	}
	p := must(r.ops.RunShow(t.Context(), r.start(request).Run))(t)
	var f struct {
		IDs   []string
		Named int `json:"ids_named"`
	}
	require.NoError(t, json.Unmarshal(p.Filter, &f))
	require.Equal(t, request.IDs[:20], f.IDs)
	require.Equal(t, 500, f.Named)
}

func TestALongListCountsTheBatchesOfTheLatest(t *testing.T) {
	r := newRuns(t)
	for n := range 103 {
		require.NoError(t,
			r.runStore.RunStore.StartRun(t.Context(),
				run.Run{ID: fmt.Sprint("run-", n), SysName: "web", Kind: run.Drain}, run.Audit{}))
	}
	all := must(r.ops.RunList(t.Context(), ops.RunQuery{Limit: 1000}))(t)
	require.Len(t, all.Runs, 103)
	ended := all.Runs[100].ID
	done, err := r.runStore.CancelRun(t.Context(), ended, run.Audit{})
	require.True(t, err == nil && done)
	_, err = r.runStore.CompleteRun(t.Context(), ended, time.Hour, func(run.RunStatus, run.Stats) run.Audit {
		return run.Audit{}
	})
	require.NoError(t, err)
	all = must(r.ops.RunList(t.Context(), ops.RunQuery{Limit: 1000}))(t)
	require.NotNil(t, all.Runs[99].Batches)
	require.Nil(t, all.Runs[100].Batches, "the batches of the latest hundred are counted")
	require.NotNil(t, all.Runs[101].Batches, "a running run without them would look as if all had ended")
	q, ids := ops.RunQuery{Limit: 40}, []string(nil)
	for range 3 {
		page := must(r.ops.RunList(t.Context(), q))(t)
		for _, one := range page.Runs {
			ids = append(ids, one.ID)
		}
		q.Page = page.Next
	}
	require.Empty(t, q.Page, "the end")
	for i, one := range all.Runs {
		require.Equal(t, one.ID, ids[i])
	}
	_, err = r.ops.RunList(t.Context(), ops.RunQuery{Page: "a b"})
	require.Equal(t, ops.Usage, refusal(err))
}

func TestCancelAndResume(t *testing.T) {
	r := newRuns(t)
	r.fill(1)
	begun := r.start(replayAll()).Run
	words := ops.RunRequest{Run: begun, Why: "wrong filter"}
	p := must(r.ops.RunCancel(by(t, "pat"), words))(t)
	require.True(t, p.Cancel)
	_, err := r.ops.RunResume(by(t, "pat"), words)
	require.Equal(t, ops.Conflict, refusal(err))
	require.ErrorContains(t, err, "it is to be cancelled: resume it when it has ended")
	entries := r.audited(run.CodeRunCancel)
	require.Len(t, entries, 1)
	require.Equal(t, []any{"WARN", "pat", "wrong filter", begun},
		[]any{entries[0].Level, entries[0].By, entries[0].Why, entries[0].Run})
	r.complete(begun)
	_, err = r.ops.RunCancel(by(t, "pat"), words)
	require.Equal(t, ops.NotFound, refusal(err))
	require.ErrorContains(t, err, "is running")
	require.Len(t, r.audited(run.CodeRunCancel), 1, "what was refused is not audited")

	p = must(r.ops.RunResume(by(t, "pat"), words))(t)
	require.Equal(t, []any{run.RunRunning, 1, ""}, []any{p.Status, p.Epoch, p.Note})
	require.Len(t, r.audited(run.CodeRunResume), 1)
	messages := r.queue.Messages()
	require.Len(t, messages, 2, "a manager gets a message")
	notice := must(run.ReadPayload(messages[1].Body, run.RunMessage))(t)
	require.Equal(t, 1, notice.Epoch, "of the epoch that it may claim")

	for _, bad := range []ops.RunRequest{{Why: "x"}, {Run: begun}} {
		_, err = r.ops.RunCancel(by(t, "pat"), bad)
		require.Equal(t, ops.Usage, refusal(err))
	}
}

func TestAResumedRunThatWasHandedOffGetsAManagerForTheRest(t *testing.T) {
	r := newRuns(t)
	r.fill(1)
	begun := r.start(replayAll()).Run
	lease, ok, err := r.runStore.ClaimRun(t.Context(), begun, 0, -1, run.Worker{ID: "manager-1"}, time.Minute)
	require.NoError(t, err)
	require.True(t, ok)
	hold := run.RunLease{Run: begun, Owner: "manager-1", Epoch: lease.Epoch}
	require.NoError(t, r.runStore.AddChunk(t.Context(), hold, run.Chunk{First: 1, Batches: [][]string{{"a"}}}))
	require.NoError(t, r.runStore.EndHandOff(t.Context(), hold, run.Audit{}))
	words := ops.RunRequest{Run: begun, Why: "x"}
	_, err = r.ops.RunCancel(by(t, "pat"), words)
	require.NoError(t, err)
	r.complete(begun)
	p := must(r.ops.RunResume(by(t, "pat"), words))(t)
	require.Empty(t, p.Note)
	require.Equal(t, map[run.BatchStatus]int{run.PendingRetry: 1}, p.Stats.Batches)
	require.Equal(t, 2, r.queue.Sends(), "a manager sends its batches again")
}

// The breaker does not learn the result of a request of Ops.
func TestOperatorsRequestsDoNotChangeTheBreaker(t *testing.T) {
	r := newRuns(t)
	r.fill(1)
	before := r.snapshot()["etag"]
	for range 10 {
		_, err := r.ops.RunShow(t.Context(), "nobody")
		require.Equal(t, ops.NotFound, refusal(err))
		_, err = r.ops.BatchList(t.Context(), ops.BatchQuery{Batch: "nobody/1"})
		require.Equal(t, ops.NotFound, refusal(err))
	}
	r.runStore.fails = down()
	for range 10 {
		r.clock = r.clock.Add(10 * time.Second)
		_, err := r.ops.StartRun(by(t, "pat"), replayAll())
		require.Equal(t, "refused", fault.CodeOf(err))
	}
	require.Equal(t, breaker.Running, r.flow().Flow())
	r.runStore.fails = nil
	require.Equal(t, before, r.snapshot()["etag"])
}

// An action that comes when a probe is due sends the probe first.
func TestAnActionMayTakeTheProbe(t *testing.T) {
	for name, act := range map[string]func(r *runs, id string) error{
		"cancel": func(r *runs, id string) error {
			_, err := r.ops.RunCancel(by(t, "pat"), ops.RunRequest{Run: id, Why: "x"})
			return err
		},
		"requeue": func(r *runs, id string) error {
			_, err := r.ops.BatchRequeue(by(t, "pat"), ops.RequeueRequest{Run: id, Why: "x"})
			return err
		},
	} {
		for _, kind := range []fault.Kind{fault.Infrastructure, fault.Throttled, fault.Quota} {
			r := newRuns(t)
			r.fill(1)
			begun := r.start(replayAll()).Run
			r.handOff(begun, 1, 1, 1)
			r.open(kind, "x")
			require.True(t, breaker.IsRefusal(act(r, begun)), "%s, %s: not yet", name, kind)
			r.clock = r.clock.Add(time.Minute)
			require.NoError(t, act(r, begun), "%s, %s", name, kind)
			require.Equal(t, breaker.RampingUp, r.flow().Flow(), "%s, %s", name, kind)
		}
	}
}

// An operator who paused because of a run may cancel it before the resume.
func TestARunCanBeCancelledDuringAPause(t *testing.T) {
	r := newRuns(t)
	r.fill(1)
	begun := r.start(replayAll()).Run
	_, err := r.ops.Pause(by(t, "pat"), ops.FlowRequest{Why: "the wrong run"})
	require.NoError(t, err)
	p := must(r.ops.RunCancel(by(t, "pat"), ops.RunRequest{Run: begun, Why: "x"}))(t)
	require.True(t, p.Cancel)
	require.Equal(t, breaker.PausedFlow, r.flow().Flow())
}
