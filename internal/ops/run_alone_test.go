package ops_test

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"sqlwriter/internal/ops"
	"sqlwriter/internal/run"
)

// aloneID is the run of one process.
const aloneID = "reprocess-alone"

// startAlone starts a run of one process with 40 documents, and does some of them in 8 seconds.
func (r *runs) startAlone(counts map[string]int) {
	r.t.Helper()
	ctx := r.t.Context()
	require.NoError(r.t, r.audit.Start(ctx,
		ops.Run{ID: aloneID, Kind: "reprocess", Filter: json.RawMessage(`{"code":"2628"}`), Matched: 40, AtLeast: true, RequestedBy: "pat", Why: "column widened"},
		ops.Audit{Action: "reprocess", By: "pat", Why: "column widened", Subject: aloneID}))
	r.clock = r.clock.Add(8 * time.Second)
	_, err := r.audit.Progress(ctx, aloneID, counts)
	require.NoError(r.t, err)
}

func cancelAlone() ops.CancelRequest {
	return ops.CancelRequest{Run: aloneID, By: "kim", Why: "wrong filter"}
}

func TestARunOfOneProcessIsShownAsAnyOther(t *testing.T) {
	r := newRuns(t)
	r.fill(1)
	r.startAlone(map[string]int{"applied": 12, "changed": 4})
	p, err := r.ops.RunShow(t.Context(), aloneID)
	require.NoError(t, err)
	known, more := p.Known()
	require.Equal(t, []any{16, 40, false, 2.0, int64(12), ""}, []any{p.Done, known, more, p.PerSecond, p.LeftSeconds, p.Note})
	require.Equal(t, map[string]int{"applied": 12, "changed": 4}, p.Counts)
	require.Equal(t, []any{"web", "pat", "column widened", run.RunRunning, ""}, []any{p.SysName, p.RequestedBy, p.Why, p.Status, p.Pattern})
	require.Equal(t, "2025-12-18T10:00:08-06:00", p.HeartbeatAt.Format(time.RFC3339), "in the deployment's zone")
	text, err := json.Marshal(p)
	require.NoError(t, err)
	require.Contains(t, string(text), `"stats":{"batches":{},"documents":{}}`)

	queued := r.start(replayAll()).Run
	all, err := r.ops.RunList(t.Context(), 0)
	require.NoError(t, err)
	require.Equal(t, []string{queued, aloneID}, []string{all[0].ID, all[1].ID}, "both sorts are in one list")
	require.NotNil(t, all[0].Batches)
	require.Nil(t, all[1].Batches)
	require.Equal(t, p.Counts, all[1].Counts)
}

func TestARunOfOneProcessIsCancelledAsAnyOther(t *testing.T) {
	r := newRuns(t)
	r.startAlone(map[string]int{"applied": 12})
	p, err := r.ops.RunCancel(t.Context(), cancelAlone())
	require.NoError(t, err)
	require.Equal(t, []any{true, run.RunRunning}, []any{p.Cancel, p.Status}, "it ends after its batch")
	entry := r.audits()[0]
	require.Equal(t, []string{"cancel", "kim", "wrong filter", aloneID}, []string{entry.Action, entry.By, entry.Why, entry.Subject})
	cancel, err := r.audit.Progress(t.Context(), aloneID, map[string]int{"applied": 13})
	require.NoError(t, err)
	require.True(t, cancel)

	gone := cancelAlone()
	gone.Gone = true
	p, err = r.ops.RunCancel(t.Context(), gone)
	require.NoError(t, err)
	require.Equal(t, []any{run.RunCancelled, map[string]int{"applied": 13}, 13, false}, []any{p.Status, p.Counts, p.Done, p.EndedAt.IsZero()})
	require.Zero(t, p.LeftSeconds)
	for _, again := range []ops.CancelRequest{cancelAlone(), gone} {
		_, err = r.ops.RunCancel(t.Context(), again)
		require.Equal(t, ops.NotFound, refusal(err))
	}
	require.Len(t, r.audits(), 3, "what was refused is not audited")
}

func TestASilentProcessIsReported(t *testing.T) {
	r := newRuns(t)
	r.startAlone(nil)
	r.clock = r.clock.Add(10*time.Minute - time.Second)
	p, err := r.ops.RunShow(t.Context(), aloneID)
	require.NoError(t, err)
	require.Empty(t, p.Note)
	r.clock = r.clock.Add(time.Second)
	p, err = r.ops.RunShow(t.Context(), aloneID)
	require.NoError(t, err)
	require.Contains(t, p.Note, "it has recorded nothing since 2025-12-18 10:00:08: ")
	require.Contains(t, p.Note, "`run cancel "+aloneID+" --gone --why TEXT` ends it")
	require.NoError(t, r.audit.End(t.Context(), aloneID, ops.Completed, nil))
	r.clock = r.clock.Add(time.Hour)
	p, err = r.ops.RunShow(t.Context(), aloneID)
	require.NoError(t, err)
	require.Empty(t, p.Note, "what has ended says nothing any more")
}

func TestWhatOneProcessDidIsNeitherResumedNorListed(t *testing.T) {
	r := newRuns(t)
	r.startAlone(nil)
	for range 10 {
		_, err := r.ops.RunResume(t.Context(), ops.ResumeRequest{RunRequest: ops.RunRequest{Run: aloneID, By: "kim", Why: "x"}})
		require.Equal(t, ops.Conflict, refusal(err))
		require.ErrorContains(t, err, "the same `reprocess` asked for again takes what is left")
		_, err = r.ops.RunItems(t.Context(), ops.ItemQuery{Run: aloneID})
		require.Equal(t, ops.Conflict, refusal(err))
		require.ErrorContains(t, err, "it keeps its counts, and not what became of each document")
	}
	require.Len(t, r.audits(), 1)
}

// A reprocess is a run of one process, and shows how much is left.
func TestAReprocessingIsARunAmongTheOthers(t *testing.T) {
	r := newRuns(t)
	r.fill(3)
	res, err := r.ops.Reprocess(t.Context(), ops.ReprocessRequest{All: true, Limit: 2, By: "pat", Why: "x"})
	require.NoError(t, err)
	p, err := r.ops.RunShow(t.Context(), res.Run)
	require.NoError(t, err)
	require.Equal(t, []any{"web", run.Kind("reprocess"), 2, true, 2, run.RunCompleted}, []any{p.SysName, p.Kind, p.Matched, p.AtLeast, p.Done, p.Status})
}

func TestALongListCountsTheBatchesOfTheLatest(t *testing.T) {
	r := newRuns(t)
	for n := range 103 {
		require.NoError(t, r.runStore.RunStore.StartRun(t.Context(), run.Run{ID: fmt.Sprint("run-", n), SysName: "web", Kind: run.Drain, Pattern: run.TwoPhase}, run.Audit{}))
	}
	r.startAlone(nil)
	all, err := r.ops.RunList(t.Context(), 1000)
	require.NoError(t, err)
	require.Len(t, all, 104)
	require.Nil(t, all[0].Batches, "one process does it alone")
	require.NotNil(t, all[100].Batches)
	require.Nil(t, all[101].Batches)
}

// Two environments share a database.
func TestTheListsAreOfThisEnvironment(t *testing.T) {
	r := newRuns(t)
	r.startAlone(nil)
	require.NoError(t, r.store.For("dev").AuditLog().Start(t.Context(), ops.Run{ID: "theirs"}, ops.Audit{Action: "reprocess", Subject: "theirs"}))
	all, err := r.ops.RunList(t.Context(), 10)
	require.NoError(t, err)
	audits, err := r.ops.Audits(t.Context(), ops.AuditQuery{Limit: 10})
	require.NoError(t, err)
	require.Equal(t, []int{1, 1}, []int{len(all), len(audits)})
	require.Equal(t, []string{aloneID, aloneID}, []string{all[0].ID, audits[0].Subject})
	for name, act := range map[string]func() error{
		"show": func() error { _, err := r.ops.RunShow(t.Context(), "theirs"); return err },
		"cancel": func() error {
			_, err := r.ops.RunCancel(t.Context(), ops.CancelRequest{Run: "theirs", By: "b", Why: "w", Gone: true})
			return err
		},
	} {
		require.Equal(t, ops.NotFound, refusal(act()), name)
	}
}
