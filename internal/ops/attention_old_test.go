package ops_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"sqlwriter/internal/ops"
	"sqlwriter/internal/run"
)

// What the timer counted before it went silent says nothing of now: a document may have been committed since.
func TestOldCountsAskForNothing(t *testing.T) {
	r := newRuns(t)
	r.hours()
	r.put(result(1, "x", `{"status":"pending"}`),
		result(2, "x", `{"status":"failed","failed_at":"2025-12-18 15:59:00.000000-06:00"}`))
	r.queue.Send(t.Context(), []run.Outgoing{{ID: "a"}})
	r.queue.DeadLetter(1)
	r.clock = r.clock.Add(4 * time.Hour)
	require.Len(t, alarms(r.tick()), 3)
	r.clock = r.clock.Add(3 * time.Hour)
	s := must(r.ops.Status(t.Context(), ops.StatusQuery{}))(t)
	require.NotNil(t, s.Counts)
	require.Len(t, s.Attention, 1, "%v", s.Attention)
	require.Contains(t, alarms(s), "timer_silent")
}
