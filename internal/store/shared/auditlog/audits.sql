-- The latest entries of an environment's audit log, newest first.
SELECT{{.Top}}
    a.audit_id, a.done_at, a.level, a.action, a.done_by, a.why, a.subject, a.run_id, a.job_id, a.detail
FROM {{.AuditLog}} AS a
WHERE a.sys_name = @sys_name AND a.audit_id < @before
ORDER BY a.audit_id DESC{{.Limit}};
