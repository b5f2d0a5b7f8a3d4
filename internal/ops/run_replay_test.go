package ops_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"sqlwriter/internal/fault"
	"sqlwriter/internal/invoice"
	"sqlwriter/internal/ops"
	"sqlwriter/internal/run"
)

// replayHere replays all failed documents and returns the run.
func (r *runs) replayHere(ids ...string) ops.RunProgress {
	r.t.Helper()
	request := replayAll()
	request.IDs, request.All = ids, len(ids) == 0
	return *r.startHere(request).Progress
}

func TestAReplayAfterAFixRewritesTheMark(t *testing.T) {
	r := newRuns(t)
	r.sink.AddLines(1)
	r.put(result(1, tooLong(), ""))
	r.poison(1)
	require.Equal(t, invoice.StatusAIError, r.status(1))
	require.Len(t, r.evidence.Files(), 3)

	// A repair of the document does not change sql_writer.
	state := must(json.Marshal(r.state(1)))(t)
	r.put(result(1, "mended", string(state)))
	r.docs.states = nil
	p := r.replayHere()
	require.Equal(t, []any{run.RunCompleted, map[invoice.Outcome]int{invoice.OutcomeApplied: 1}},
		[]any{p.Status, p.Stats.Outcomes})
	require.Equal(t, "RC-AI", r.status(1))
	after := r.state(1)
	require.Equal(t, []any{invoice.Committed, invoice.OutcomeApplied, 0, 1},
		[]any{after.Status, after.Outcome, after.RetryCount, after.ReprocessCount})
	require.Len(t, r.docs.states, 1, "failed becomes committed in one patch")
}

func TestASecondPoisoningKeepsItsOwnEvidence(t *testing.T) {
	r := newRuns(t)
	r.sink.AddLines(1)
	r.put(result(1, tooLong(), ""))
	r.poison(1)
	first := r.evidence.Files()
	e, err := r.ops.Why(t.Context(), ops.WhyQuery{ID: id(1)})
	require.NoError(t, err)
	require.Contains(t, first, strings.TrimPrefix(e.Evidence, "web/")+"/error.json",
		"why names the folder that there is")

	r.docs.states = nil
	p := r.replayHere() // the cause is not fixed
	require.Equal(t, []any{run.RunCompletedWithFailures, map[invoice.Outcome]int{invoice.OutcomeRetryScheduled: 1}},
		[]any{p.Status, p.Stats.Outcomes})
	require.Equal(t, []any{invoice.RetryScheduled, 1, 1},
		[]any{r.state(1).Status, r.state(1).RetryCount, r.state(1).ReprocessCount}, "its budget starts anew")
	r.poison(1)
	second := r.evidence.Files()
	require.Len(t, second, 6)
	for name, content := range first {
		require.Equal(t, content, second[name])
	}
	e = must(r.ops.Why(t.Context(), ops.WhyQuery{ID: id(1)}))(t)
	require.Contains(t, second, strings.TrimPrefix(e.Evidence, "web/")+"/error.json")
	require.NotContains(t, first, strings.TrimPrefix(e.Evidence, "web/")+"/error.json")
	for _, written := range r.docs.states {
		if written.id == id(1) {
			require.NotEqual(t, invoice.Pending, written.state.Status, "it never passes through pending")
		}
	}
}

func TestTheEvidenceOfAnUnreadableDocumentNamesTheRun(t *testing.T) {
	r := newRuns(t)
	r.put(
		strings.Replace(result(1, "x", failed(1, fault.Document, "validation.required")), `"IVCE_DTL_UID":1`,
			`"IVCE_DTL_UID":"none"`, 1))
	p := r.replayHere()
	require.Equal(t, map[invoice.Outcome]int{invoice.OutcomeRetryScheduled: 1}, p.Stats.Outcomes)
	r.clock = r.clock.Add(2 * time.Minute)
	r.applyOther()
	p = r.replayHere(id(1))
	require.Equal(t, map[invoice.Outcome]int{invoice.OutcomeFailed: 1}, p.Stats.Outcomes,
		"others got through after the first failure")
	named := false
	for name, content := range r.evidence.Files() {
		named = named || (strings.HasSuffix(name, "error.json") && strings.Contains(string(content), p.ID))
	}
	require.True(t, named)
}
