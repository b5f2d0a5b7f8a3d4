-- One entry more in the audit log, by the database's clock.
{{template "begin.sql" . -}}
INSERT INTO {{.AuditLog}} (done_at, action, done_by, why, subject, detail, level, run_id, job_id)
VALUES (
    {{.Now}}, @action, @by, @why, @subject, NULLIF(@detail, ''),
    NULLIF(@level, ''), NULLIF(@run, ''), NULLIF(@job, '')
);
