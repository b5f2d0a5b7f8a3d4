-- Batches that have been queued for @silent, of running runs of which nobody has claimed a batch for @silent. The run comes
-- first: it is asked once whether it is silent, not once for each of its batches.
SELECT{{.Top}}
    j.job_id, j.attempt
FROM {{.Run}} AS r
CROSS JOIN {{.Job}} AS j
WHERE
    r.status = 'running' AND r.sys_name = @sys_name
    AND NOT EXISTS (
        SELECT 1 FROM {{.Job}} AS c
        WHERE c.run_id = r.run_id AND c.claimed_at > {{.Ago "silent"}}
    )
    AND j.run_id = r.run_id AND j.status = 'queued'
    AND j.queued_at <= {{.Ago "silent"}}
ORDER BY r.run_number, j.number{{.Limit}};
