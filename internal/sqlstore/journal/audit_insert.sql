-- One entry more in the audit log, by the database's clock.
{{template "begin.sql" . -}}
INSERT INTO {{.AuditLog}} (done_at, action, done_by, why, subject, detail)
VALUES ({{.Now}}, @action, @by, @why, @subject, NULLIF(@detail, ''));
