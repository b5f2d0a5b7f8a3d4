package conformance

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"sqlwriter/internal/invoice"
	"sqlwriter/internal/ops"
	"sqlwriter/internal/run"
)

// UseRunStore makes every call about runs once, beside an audit log on the same tables, and leaves batches of every end
// behind.
func UseRunStore(t testing.TB, s run.Store, j ops.AuditLog) {
	t.Helper()
	ctx, stale := t.Context(), 10*time.Minute
	a := run.Audit{
		Action: "X", Level: run.LevelInfo, By: "b", Why: "w", Run: "shared", Batch: run.BatchID("web", "shared", 1),
		Detail: []byte(`{"n": 1}`),
	}
	require.NoError(t, s.StartRun(ctx, run.Run{ID: "shared", SysName: "web", Kind: run.Drain}, a))
	r, claimed, err := s.ClaimRun(ctx, "shared", 0, noEpoch, run.Worker{ID: "manager-1", Instance: "i"}, stale)
	require.NoError(t, err)
	require.True(t, claimed)
	lease := run.RunLease{Run: "shared", Owner: r.Owner, Epoch: r.Epoch}
	require.NoError(t, s.AddChunk(ctx, lease, run.Chunk{
		Batches: [][]string{{"a", "b"}, {"c"}, {"d"}, {"e"}}, First: 1, Watermark: "w", Wait: time.Minute,
	}, a, a))
	cancel, err := s.BeatRun(ctx, lease)
	require.NoError(t, err)
	require.False(t, cancel)
	known, err := s.Known(ctx, "shared", []string{"a", "z"})
	require.NoError(t, err)
	require.Equal(t, map[string]bool{"a": true}, known)
	require.NoError(t, s.EndHandOff(ctx, lease, a))
	batches, err := s.Unsent(ctx, "shared", 10)
	require.NoError(t, err)
	require.Len(t, batches, 4)
	n, err := s.MarkQueued(ctx, run.RunLease{}, batches[:2])
	require.NoError(t, err)
	require.Equal(t, 2, n)
	retry, failed, err := s.MarkUnsent(ctx, batches[2:], "refused", true, func(run.Batch) run.Audit { return a })
	require.NoError(t, err)
	require.Equal(t, []int{2, 0}, []int{retry, failed})

	c, err := s.ClaimBatch(ctx, batches[0].ID, ticketOf(batches[0]),
		run.Worker{ID: "worker-1", Instance: "i"}, stale, a)
	require.NoError(t, err)
	require.Equal(t, run.Taken, c.Answer)
	require.Equal(t, []string{"a", "b"}, c.Open)
	_, err = s.BeatBatch(ctx, c.Lease)
	require.NoError(t, err)
	require.NoError(t,
		s.SaveOutcomes(ctx, c.Lease,
			[]run.ItemOutcome{
				{Document: "a", Outcome: invoice.OutcomeApplied},
				{Document: "b", Outcome: invoice.OutcomeFailed, Code: "2628"},
			},
			[]run.ErrorDetail{{Document: "b", Code: "2628", Message: "too long", Type: run.TypeMigration}}))
	_, err = s.FinishBatch(ctx, c.Lease, func(run.BatchStats) run.Audit { return a })
	require.NoError(t, err)
	c, err = s.ClaimBatch(ctx, batches[1].ID, ticketOf(batches[1]), run.Worker{ID: "worker-2", Instance: "i"}, stale, a)
	require.NoError(t, err)
	require.NoError(t, s.ReleaseBatch(ctx, c.Lease, a))
	c, err = s.ClaimBatch(ctx, batches[1].ID, ticketOf(batches[1]), run.Worker{ID: "worker-3", Instance: "i"}, stale, a)
	require.NoError(t, err)
	require.True(t, c.TookOver)
	require.NoError(t, s.FailBatch(ctx, c.Lease, "gave up", a))
	dead, err := s.DeadLetter(ctx, batches[2].ID, batches[2].Attempt+1, "a dead letter", stale, a)
	require.NoError(t, err)
	require.True(t, dead)
	again, err := s.RequeueBatch(ctx, batches[2].ID, a)
	require.NoError(t, err)
	require.True(t, again)

	_, _, found, err := s.Batch(ctx, batches[0].ID)
	require.NoError(t, err)
	require.True(t, found)
	for _, of := range []string{"", "shared"} {
		for _, status := range []run.BatchStatus{"", run.Completed} {
			_, err = s.ListBatches(ctx, of, status, "", 10)
			require.NoError(t, err)
		}
	}
	for _, outcomes := range [][]invoice.Outcome{nil, {invoice.OutcomeFailed, invoice.OutcomeRetryScheduled}} {
		_, err = s.Items(ctx, "shared", outcomes, "", 10)
		require.NoError(t, err)
	}
	_, err = s.OnTheWay(ctx, "web")
	require.NoError(t, err)
	_, err = s.ToSend(ctx, "web", 10)
	require.NoError(t, err)
	_, err = s.RequeueSilent(ctx, "web", stale, 10)
	require.NoError(t, err)
	_, _, err = s.Rescue(ctx, "web", stale, stale, 10)
	require.NoError(t, err)
	open, err := s.OpenRuns(ctx, "web", 10)
	require.NoError(t, err)
	require.Len(t, open, 1)
	require.NoError(t, s.Write(ctx, a))
	_, err = s.CancelRun(ctx, "shared", a)
	require.NoError(t, err)
	ended, err := s.CompleteRun(ctx, "shared", stale, func(run.RunStatus, run.Stats) run.Audit { return a })
	require.NoError(t, err)
	require.True(t, ended)
	_, err = s.FailRun(ctx, "shared", "x", stale, a)
	require.NoError(t, err)
	_, err = s.ResumeRun(ctx, "shared", a)
	require.NoError(t, err)
	_, err = s.Stats(ctx, "shared")
	require.NoError(t, err)

	list, err := s.ListRuns(ctx, "", 10)
	require.NoError(t, err)
	require.Equal(t, "shared", list[0].ID)
	audits, err := j.Audits(ctx, ops.AuditQuery{All: true, Limit: 100})
	require.NoError(t, err)
	require.GreaterOrEqual(t, len(audits), 15, "the audit log lists the entries about runs too")
}

// SeeRunViews looks at what UseRunStore left, in the views of a schema, by the names that the monitoring queries know.
func SeeRunViews(t testing.TB, row func(t testing.TB, query string, columns int) []string, schema string) {
	t.Helper()
	require.Equal(t,
		[]string{
			"shared", run.BatchID("web", "shared", 1), "1", "completed", "0", "2", "1", "1", "shared", "1",
		}, row(t, `SELECT
    b.run_id, b.batch_id, b.batch_number, b.batch_status, b.queue_attempt_count, b.total_count,
    b.success_count, b.failure_count, b.parent_job_id,
    CASE WHEN b.queued_at >= b.created_at AND b.process_end_time >= b.process_start_time
        AND b.updated_at >= b.created_at THEN 1 ELSE 0 END AS times
FROM `+schema+`processing_job AS b WHERE b.batch_number = 1`, 10))
	require.Equal(t, []string{"pending_retry", ""},
		row(t,
			`SELECT b.batch_status, b.last_queue_error FROM `+schema+`processing_job AS b WHERE b.batch_number = 4`, 2),
		"cut short, and wanted again")
	require.Equal(t, []string{"failed", "gave up", "1", "1"}, row(t, `SELECT p.status, p.error_message,
    CASE WHEN p.completed_at >= p.started_at THEN 1 ELSE 0 END AS times,
    CASE WHEN p.last_heartbeat >= p.started_at THEN 1 ELSE 0 END AS beat
FROM `+schema+`processing_job AS p WHERE p.job_id = '`+run.BatchID("web", "shared", 2)+`'`, 4))
}
