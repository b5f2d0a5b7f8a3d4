-- A new run, unless there is one with its id.
{{template "begin.sql" . -}}
INSERT INTO {{.Run}} (
    run_id, kind, filter, requested_by, why, status, cancel, counts, started_at, heartbeat_at
)
SELECT
    @id, @kind, NULLIF(@filter, ''), @by, @why, 'running', 0, @counts, {{.Now}}, {{.Now}}
WHERE NOT EXISTS (SELECT 1 FROM {{.Run}} AS r WHERE r.run_id = @id);
