-- The latest errors and warnings of the environment's audit log, newest first. Each level is read from the end of
-- its part of the index, so older entries are not read.
WITH errors AS (
    SELECT{{.Top}}
        a.audit_id
    FROM {{.AuditLog}} AS a
    WHERE a.level = 'ERROR' AND a.sys_name = @sys_name
    ORDER BY a.audit_id DESC{{.Limit}}
),

warnings AS (
    SELECT{{.Top}}
        a.audit_id
    FROM {{.AuditLog}} AS a
    WHERE a.level = 'WARN' AND a.sys_name = @sys_name
    ORDER BY a.audit_id DESC{{.Limit}}
),

latest AS (
    SELECT f.audit_id FROM errors AS f
    UNION ALL
    SELECT f.audit_id FROM warnings AS f
)

SELECT{{.Top}}
    a.done_at,
    a.level,
    a.action,
    a.run_id,
    a.job_id AS batch_id,
    a.subject,
    a.done_by,
    a.why
FROM latest AS f
INNER JOIN {{.AuditLog}} AS a ON a.audit_id = f.audit_id
ORDER BY a.audit_id DESC{{.Limit}};
