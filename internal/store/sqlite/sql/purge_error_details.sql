-- Deletes the environment's oldest error details that were added more than @days ago, but for those of a running run.
DELETE FROM sqlwriter_error_detail
WHERE error_id IN (
    SELECT e.error_id
    FROM sqlwriter_error_detail AS e
    WHERE
        e.sys_name = @sys_name AND e.created_at < {{template "before"}}
        AND NOT EXISTS (SELECT 1 FROM sqlwriter_run AS r WHERE r.run_id = e.run_id AND r.status = 'running')
    ORDER BY e.created_at
    LIMIT @limit
);
