package run

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"sqlwriter/internal/commit"
	"sqlwriter/internal/invoice"
)

// A worker died between finishing documents and storing their outcomes. The next worker finds them finished, and stores
// that outcome instead of skipped.
func TestDocumentsThatADeadWorkerFinishedAreNotSkipped(t *testing.T) {
	res := &results{outcomes: map[string]ItemOutcome{}}
	document := func(id, status string) json.RawMessage {
		return json.RawMessage(`{"id":"` + id + `","request_details":{"sys_name":"web"},"sql_writer":{"status":"` +
			status + `","retry_count":0}}`)
	}
	reported := res.recordAfterCrash([]json.RawMessage{
		document("done", "committed"), document("again", "retry_scheduled"), document("poison", "failed"),
		document("odd", "on_hold"), document("new", "pending"),
	}, Options{SysName: "web", Now: time.Now})
	for _, id := range []string{"done", "again", "poison", "odd"} {
		reported(commit.DocumentResult{ID: id, Outcome: "skipped"})
	}
	reported(commit.DocumentResult{ID: "new", Outcome: "applied"})
	found := map[string]invoice.Outcome{}
	for id, o := range res.outcomes {
		found[id] = o.Outcome
	}
	require.Equal(t, map[string]invoice.Outcome{
		"done": invoice.OutcomeApplied, "again": invoice.OutcomeRetryScheduled, "poison": invoice.OutcomeFailed,
		"odd": invoice.OutcomeSkipped, "new": invoice.OutcomeApplied,
	}, found)
}

func TestShareDividesTheLimit(t *testing.T) {
	for room, of := range map[[2]int]int{
		{16, 1}: 16, {16, 2}: 8, {16, 3}: 5, {1, 3}: 1, {0, 1}: 0, {-4, 2}: 0, {5, 0}: 5,
	} {
		require.Equal(t, of, share(room[0], room[1]), "%v", room)
	}
}
