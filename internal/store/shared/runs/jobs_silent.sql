-- Queued batches whose message is taken for lost. They have been queued for @silent. And a batch that was queued later was
-- claimed since, @silent ago or longer: the queue has passed them. Or nothing was queued or claimed for @silent: then the
-- first of them alone, and what becomes of its message says more of the others. All that is asked is of the running runs
-- of the environment.
SELECT{{.Top}}
    j.job_id, j.attempt
FROM {{.Run}} AS r
CROSS JOIN {{.Batch}} AS j
WHERE
    r.status = 'running' AND r.sys_name = @sys_name AND j.run_id = r.run_id AND j.status = 'queued'
    AND j.queued_at <= {{.Ago "silent"}}
    AND (
        j.queued_at < (
            SELECT MAX(c.queued_at)
            FROM {{.Run}} AS o
            CROSS JOIN {{.Batch}} AS c
            WHERE
                o.status = 'running' AND o.sys_name = @sys_name AND c.run_id = o.run_id
                AND c.claimed_at <= {{.Ago "silent"}}
                AND c.claimed_at >= c.queued_at
        )
        OR (
            j.job_number = (
                SELECT MIN(c.job_number)
                FROM {{.Run}} AS o
                CROSS JOIN {{.Batch}} AS c
                WHERE o.status = 'running' AND o.sys_name = @sys_name AND c.run_id = o.run_id AND c.status = 'queued'
            )
            AND NOT EXISTS (
                SELECT 1
                FROM {{.Run}} AS o
                CROSS JOIN {{.Batch}} AS c
                WHERE
                    o.status = 'running' AND o.sys_name = @sys_name AND c.run_id = o.run_id
                    AND (
                        c.status = 'pending_retry'
                        OR c.claimed_at > {{.Ago "silent"}}
                        OR c.queued_at > {{.Ago "silent"}}
                    )
            )
        )
    )
ORDER BY j.job_number{{.Limit}};
