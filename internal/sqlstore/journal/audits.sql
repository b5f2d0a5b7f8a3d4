-- The latest entries of the audit log, newest first.
SELECT{{.Top}}
    a.done_at, a.action, a.done_by, a.why, a.subject, a.detail
FROM {{.AuditLog}} AS a
ORDER BY a.audit_id DESC{{.Limit}};
