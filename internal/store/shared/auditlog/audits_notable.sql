-- The latest entries{{if .ByRun}} about one run{{end}} of the sorts below, newest first. Each sort is a range of an index.
SELECT{{.Top}}
    a.audit_id, a.done_at, a.level, a.action, a.done_by, a.why, a.subject, a.run_id, a.job_id, a.detail
FROM (
{{- range $i, $sort := .Sorts}}
{{- if $i}}
    UNION ALL{{end}}
    SELECT s.audit_id FROM (
        SELECT{{$.Top}} b.audit_id FROM {{$.AuditLog}} AS b
        WHERE
            {{$sort}}{{if $.ByRun}} AND b.run_id = @run{{end}}
            AND b.sys_name = @sys_name AND b.audit_id < @before
        ORDER BY b.audit_id DESC{{$.Limit}}
    ) AS s
{{- end}}
) AS n
INNER JOIN {{.AuditLog}} AS a ON a.audit_id = n.audit_id
ORDER BY n.audit_id DESC{{.Limit}};
