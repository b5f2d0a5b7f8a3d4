-- The latest errors and warnings of the environment's audit log in the last 7 days, newest first.
SELECT{{.Top}}
    a.done_at,
    a.level,
    a.action,
    a.run_id,
    a.batch_id,
    a.subject,
    a.done_by,
    a.why
FROM {{.AuditLog}} AS a
WHERE
    a.sys_name = @sys_name
    AND a.done_at > {{.Ago 604800}}
    AND a.level IN ('ERROR', 'WARN')
ORDER BY a.audit_id DESC{{.Limit}};
