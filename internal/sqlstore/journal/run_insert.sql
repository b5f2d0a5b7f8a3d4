-- A new run. Its id is a key: a second one of the same id is an error.
{{template "begin.sql" . -}}
INSERT INTO {{.Run}} (
    run_id, kind, filter, requested_by, why, status, cancel, counts, started_at, heartbeat_at
)
VALUES (
    @id, @kind, NULLIF(@filter, ''), @by, @why, 'running', 0, @counts, {{.Now}}, {{.Now}}
);
