-- Deletes the environment's oldest entries of the audit log that were written more than @days ago.
DELETE FROM sqlwriter_audit_log
WHERE audit_id IN (
    SELECT a.audit_id
    FROM sqlwriter_audit_log AS a
    WHERE a.sys_name = @sys_name AND a.done_at < {{template "before"}}
    ORDER BY a.done_at
    LIMIT @limit
);
