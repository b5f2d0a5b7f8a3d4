-- The latest entries of the audit log that are errors or warnings, the newest first.
SELECT{{.Top}}
    a.done_at,
    a.level,
    a.action,
    a.run_id,
    a.job_id AS batch_id,
    a.subject,
    a.done_by,
    a.why
FROM {{.AuditLog}} AS a
WHERE
    a.level IN ('ERROR', 'WARN')
    AND {{.Ours "a.run_id"}}
ORDER BY a.audit_id DESC{{.Limit}};
