-- Adds an entry to the audit log. The time is the database's.
{{template "begin.sql" . -}}
{{if .AuditProcedure -}}
EXEC {{.AuditProcedure}}
    @sys_name = @sys_name, @action = @action, @by = @by, @why = @why, @subject = @subject, @detail = @detail,
    @level = @level, @run = @run, @batch = @batch;
{{- else -}}
INSERT INTO {{.Prefix}}audit_log (done_at, sys_name, action, done_by, why, subject, detail, level, run_id, batch_id)
VALUES (
    {{.Now}}, @sys_name, @action, @by, @why, @subject, NULLIF(@detail, ''),
    NULLIF(@level, ''), NULLIF(@run, ''), NULLIF(@batch, '') {{- /* no server is sent this line, so none lints it */}}
);
{{- end}}
