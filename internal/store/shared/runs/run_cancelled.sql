-- Ends a run that an operator asked to end, once no live worker has a batch of it.
{{template "begin.sql" . -}}
UPDATE {{.Prefix}}run
SET status = 'cancelled', ended_at = {{.Now}}
WHERE
    run_id = @run AND status = 'running' AND cancel = 1
    AND NOT EXISTS (
        SELECT 1 FROM {{.Prefix}}batch AS b
        WHERE
            b.run_id = @run AND b.status = 'processing' AND b.owner IS NOT NULL
            AND b.heartbeat_at > {{.Ago "stale"}}
    );
