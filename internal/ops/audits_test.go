package ops_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"sqlwriter/internal/ops"
	"sqlwriter/internal/run"
)

// Every action of an operator is listed without --all. A new code that PeopleCodes lacks fails here.
func TestOperatorsActionsAreNotable(t *testing.T) {
	r := newRuns(t)
	started := must(r.ops.StartRun(by(t, "pat"), ops.StartRequest{Kind: run.Drain, IDs: []string{"a"}, Why: "w"}))(t)
	_, err := r.ops.RunCancel(by(t, "pat"), ops.RunRequest{Run: started.Run, Why: "w"})
	require.NoError(t, err)
	_, err = r.ops.Pause(by(t, "pat"), ops.FlowRequest{Why: "w"})
	require.NoError(t, err)
	_, err = r.ops.Resume(by(t, "pat"), ops.ResumeFlow{Why: "w"})
	require.NoError(t, err)
	var actions []string
	audits := must(r.ops.Audits(t.Context(), ops.AuditQuery{}))(t)
	for _, a := range audits.Audits {
		actions = append(actions, a.Action)
	}
	require.Equal(t, []string{ops.FlowResumed, ops.FlowPaused, "RUN_CANCEL", "RUN_START"}, actions)

	for code, people := range map[string]bool{ // those of the use case are people's, all others are not
		run.CodeRunStart: true, run.CodeRunCancel: true, run.CodeRunResume: true, run.CodeBatchRequeue: true,
		run.CodeCompare: true, run.CodeRunHandedOff: false, run.CodeRunDone: false, run.CodeRunCancelled: false,
		run.CodeRunFail: false, run.CodeBatchCreated: false, run.CodeBatchStart: false, run.CodeBatchDone: false,
		run.CodeBatchFail: false, run.CodeBatchReleased: false, run.CodeBatchRecovered: false,
		run.CodeDeadLetter: false,
	} {
		require.Equal(t, people, run.Audit{Action: code, Level: run.LevelInfo}.Notable(), code)
		require.True(t, run.Audit{Action: code, Level: run.LevelWarn}.Notable(), code)
		require.True(t, run.Audit{Action: code, Level: run.LevelError}.Notable(), code)
	}
}

// A drain of 20,000 documents adds 600 steps. An earlier pause is on the first page all the same.
func TestAPauseIsFoundBehindTheStepsOfADrain(t *testing.T) {
	r := newRuns(t)
	_, err := r.ops.Pause(by(t, "pat"), ops.FlowRequest{Why: "index rebuild"})
	require.NoError(t, err)
	_, err = r.ops.Resume(by(t, "pat"), ops.ResumeFlow{Why: "w"})
	require.NoError(t, err)
	for n := range 600 {
		a := run.Audit{
			Action: run.CodeBatchDone, Level: run.LevelInfo, By: "worker", Why: "x", Run: "drain-1",
			Batch: fmt.Sprintf("%064d", n),
		}
		require.NoError(t, r.runStore.Write(t.Context(), a))
	}
	page := must(r.ops.Audits(t.Context(), ops.AuditQuery{}))(t)
	require.Equal(t, []any{2, ops.FlowPaused, "index rebuild"},
		[]any{len(page.Audits), page.Audits[1].Action, page.Audits[1].Why})
	page = must(r.ops.Audits(t.Context(), ops.AuditQuery{All: true, Run: "drain-1", Limit: 1000}))(t)
	require.Len(t, page.Audits, 600)
	seen := map[int64]bool{}
	q := ops.AuditQuery{All: true, Run: "drain-1", Limit: 250}
	for range 3 {
		page = must(r.ops.Audits(t.Context(), q))(t)
		for _, a := range page.Audits {
			seen[a.ID] = true
		}
		q.Page = page.Next
	}
	require.Equal(t, []any{600, ""}, []any{len(seen), q.Page}, "each once, to the end")
	for _, q := range []ops.AuditQuery{
		{Page: "x"}, {Page: "0"}, {Run: "a b"}, {Limit: 1001}, {Limit: -1}, {Action: fmt.Sprintf("%041d", 0)},
	} {
		_, err := r.ops.Audits(t.Context(), q)
		require.Equal(t, ops.Usage, refusal(err), "%+v", q)
	}
}
