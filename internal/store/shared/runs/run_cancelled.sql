-- Ends a run that an operator asked to end, once no live worker has a batch of it.
{{template "begin.sql" . -}}
UPDATE {{.Run}}
SET status = 'cancelled', ended_at = {{.Now}}
WHERE
    run_id = @run AND status = 'running' AND cancel = 1
    AND NOT EXISTS (
        SELECT 1 FROM {{.Batch}} AS j
        WHERE
            j.run_id = @run AND j.status = 'processing' AND j.owner IS NOT NULL
            AND j.heartbeat_at > {{.Ago "stale"}}
    );
