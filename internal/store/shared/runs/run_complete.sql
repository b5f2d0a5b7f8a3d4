-- Ends a run of which everything is done: with failures where a batch failed, or has documents that failed or were
-- deferred.
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
