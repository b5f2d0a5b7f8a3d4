-- Adds an entry to the audit log. The time is the database's.
{{template "begin.sql" . -}}
INSERT INTO {{.Prefix}}audit_log (done_at, sys_name, action, done_by, why, subject, detail, level, run_id, batch_id)
VALUES (
    {{.Now}}, @sys_name, @action, @by, @why, @subject, NULLIF(@detail, ''),
    NULLIF(@level, ''), NULLIF(@run, ''), NULLIF(@batch, '')
);
