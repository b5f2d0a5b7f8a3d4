-- The environment's run that ended first, more than @days ago. Runs stay whose documents a running run may still
-- read.
SELECT r.run_id
FROM sqlwriter_run AS r
WHERE
    r.sys_name = @sys_name AND r.ended_at < {{template "before"}} AND r.status <> 'running'
    AND NOT EXISTS (
        SELECT 1 FROM sqlwriter_run AS o WHERE o.status = 'running' AND o.filter ->> '$.run' = r.run_id
    )
ORDER BY r.ended_at
LIMIT 1;
