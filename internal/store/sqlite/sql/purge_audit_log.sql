-- Deletes the environment's oldest entries of the audit log that are older than its row of audit_retention says.
-- Without a row nothing is deleted, and never what a person said of repaired lines.
DELETE FROM sqlwriter_audit_log
WHERE audit_id IN (
    SELECT a.audit_id
    FROM sqlwriter_audit_log AS a
    WHERE a.sys_name = @sys_name AND a.action <> 'mark-committed' AND a.done_at < (
        SELECT strftime('%Y-%m-%dT%H:%M:%fZ', 'now', '-' || k.kept_days || ' days')
        FROM sqlwriter_audit_retention AS k
        WHERE k.sys_name = @sys_name
    )
    ORDER BY a.done_at
    LIMIT @limit
);
