-- The latest entries about one run, newest first: of one action, all, or the notable ones (ops.Audit.Notable).
SELECT{{.Top}}
    a.audit_id, a.done_at, a.level, a.action, a.done_by, a.why, a.subject, a.run_id, a.job_id, a.detail
FROM {{.AuditLog}} AS a
WHERE
    a.run_id = @run
    AND a.sys_name = @sys_name
    AND a.audit_id < @before
    AND (@action = '' OR a.action = @action{{.BinaryCollation}})
    AND (
        @all = 1 OR a.level IS NULL OR a.level IN ('WARN', 'ERROR')
        OR a.action IN ({{range $i, $code := .PeopleCodes}}{{if $i}}, {{end}}'{{$code}}'{{end}})
    )
ORDER BY a.audit_id DESC{{.Limit}};
