-- Completes a run whose batches have all ended.
{{template "begin.sql" . -}}
UPDATE {{.Prefix}}run
SET status = 'completed', ended_at = {{.Now}}
WHERE
    run_id = @run AND status = 'running' AND handed_off_at IS NOT NULL
    AND NOT EXISTS (
        SELECT 1 FROM {{.Prefix}}batch AS b
        WHERE b.run_id = @run AND b.status IN ('pending_queue', 'pending_retry', 'queued', 'processing')
    );
