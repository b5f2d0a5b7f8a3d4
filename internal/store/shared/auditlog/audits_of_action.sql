-- The latest entries of one action in an environment's audit log{{if .ByRun}} about one run{{end}}, newest first.
SELECT{{.Top}}
    a.audit_id, a.done_at, a.level, a.action, a.done_by, a.why, a.subject, a.run_id, a.job_id, a.detail
FROM {{.AuditLog}} AS a
WHERE
    a.action = @action
{{- if .BinaryCollation}}
    AND a.action = @action{{.BinaryCollation}} -- narrows the rows of the index to an exact match
{{- end}}
{{- if .ByRun}}
    AND a.run_id = @run
{{- end}}
    AND a.sys_name = @sys_name
    AND a.audit_id < @before
ORDER BY a.audit_id DESC{{.Limit}};
