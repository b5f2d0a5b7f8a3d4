-- Completes a run whose batches have all ended. It completes with failures if a batch failed, or has failed or
-- deferred documents.
{{template "begin.sql" . -}}
UPDATE {{.Run}}
SET
    status = CASE
        WHEN EXISTS (
            SELECT 1 FROM {{.Batch}} AS j
            WHERE j.run_id = @run AND (j.status = 'failed' OR j.failure_count > 0)
        ) THEN 'completed_with_failures'
        ELSE 'completed'
    END,
    ended_at = {{.Now}}
WHERE
    run_id = @run AND status = 'running' AND handed_off_at IS NOT NULL
    AND NOT EXISTS (
        SELECT 1 FROM {{.Batch}} AS j
        WHERE j.run_id = @run AND j.status IN ('pending_queue', 'pending_retry', 'queued', 'processing')
    );
