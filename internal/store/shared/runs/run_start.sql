-- A new run that many may work on: running, nobody's. Its id is a key: a second one of the same id is an error. Nobody has
-- said anything yet, so the heartbeat is its beginning.
{{template "begin.sql" . -}}
INSERT INTO {{.Run}} (
    run_id, sys_name, kind, filter, pattern, rate_per_minute, document_limit, matched_count, at_least, named_count,
    requested_by, why, status, cancel, counts, started_at, heartbeat_at
)
VALUES (
    @run, @sys_name, @kind, NULLIF(@filter, ''), NULLIF(@pattern, ''), @rate, @bound, @matched, @at_least, @named,
    @by, @why, 'running', 0, '{}', {{.Now}}, {{.Now}}
);
