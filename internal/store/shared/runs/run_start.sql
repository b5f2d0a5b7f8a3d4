-- Adds a run, running and without an owner. A duplicate id is an error. The heartbeat starts with the run.
{{template "begin.sql" . -}}
INSERT INTO {{.Prefix}}run (
    run_id, sys_name, kind, filter, rate_per_minute, document_limit, matched_count, at_least, named_count,
    requested_by, why, status, cancel, started_at, heartbeat_at
)
VALUES (
    @run, @sys_name, @kind, NULLIF(@filter, ''), @rate, @bound, @matched, @at_least, @named,
    @by, @why, 'running', 0, {{.Now}}, {{.Now}}
);
