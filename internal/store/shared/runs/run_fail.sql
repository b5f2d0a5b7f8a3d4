-- Fails a run whose hand-off has no live manager.
{{template "begin.sql" . -}}
UPDATE {{.Prefix}}run
SET status = 'failed', error = @reason, owner = NULL, ended_at = {{.Now}}
WHERE
    run_id = @run AND epoch = @epoch AND status = 'running' AND handed_off_at IS NULL
    AND (owner IS NULL OR heartbeat_at <= {{.Ago "stale"}});
