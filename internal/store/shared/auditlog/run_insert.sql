-- Adds a run. A duplicate id is an error.
{{template "begin.sql" . -}}
INSERT INTO {{.Run}} (
    run_id, sys_name, kind, filter, matched_count, at_least, requested_by, why, status, cancel, counts, started_at,
    heartbeat_at
)
VALUES (
    @id, @sys_name, @kind, NULLIF(@filter, ''), @matched, @at_least, @by, @why, 'running', 0, @counts, {{.Now}},
    {{.Now}}
);
