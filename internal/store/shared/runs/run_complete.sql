-- Completes a run whose batches have all ended.
{{template "begin.sql" . -}}
UPDATE {{.Run}}
SET status = 'completed', ended_at = {{.Now}}
WHERE
    run_id = @run AND status = 'running' AND handed_off_at IS NOT NULL
    AND NOT EXISTS (
        SELECT 1 FROM {{.Batch}} AS j
        WHERE j.run_id = @run AND j.status IN ('pending_queue', 'pending_retry', 'queued', 'processing')
    );
