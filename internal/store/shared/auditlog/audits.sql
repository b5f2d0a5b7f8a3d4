-- The latest{{if .Notable}} notable{{end}} entries of an environment
{{- if .ByAction}}, of one action{{end}}{{if .ByRun}}, about one run{{end}}, newest first.
SELECT{{.Top}}
    a.audit_id, a.done_at, a.level, a.action, a.done_by, a.why, a.subject, a.run_id, a.batch_id, a.detail
FROM {{.Prefix}}audit_log AS a
WHERE
{{- if .ByAction}}
    a.sys_name = @sys_name AND a.action = @action AND a.audit_id < @before
{{- else if .ByRun}}
    a.sys_name = @sys_name AND {{.NoIndex}}a.audit_id < @before
    AND a.done_at >= COALESCE((SELECT r.started_at FROM {{.Prefix}}run AS r WHERE r.run_id = @run), '0001-01-01')
{{- else}}
    {{.NoIndex}}a.sys_name = @sys_name AND a.audit_id < @before
{{- end}}
{{- if .ByRun}}
    AND a.run_id = @run
{{- end}}
{{- if .Notable}}
    AND (
        a.level IS NULL OR a.level IN ('WARN', 'ERROR')
        OR a.action IN ({{.PeopleCodes}})
    )
{{- end}}
ORDER BY a.audit_id DESC{{.Limit}};
