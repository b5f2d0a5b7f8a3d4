-- The environment's run that ended first, more than @days ago. Runs stay whose documents a running run may still read,
-- and the last comparison that completed: its beginning is where the next one begins.
SELECT r.run_id
FROM sqlwriter_run AS r
WHERE
    r.sys_name = @sys_name AND r.ended_at < {{template "before"}} AND r.status <> 'running'
    AND NOT EXISTS (
        SELECT 1 FROM sqlwriter_run AS o WHERE o.status = 'running' AND o.filter ->> '$.run' = r.run_id
    )
    AND r.run_id IS NOT (
        SELECT c.run_id
        FROM sqlwriter_run AS c
        WHERE c.kind = '{{.Comparing}}' AND c.sys_name = @sys_name AND +c.status = 'completed' AND c.named_count = 0
        ORDER BY c.run_number DESC
        LIMIT 1
    )
ORDER BY r.ended_at
LIMIT 1;
