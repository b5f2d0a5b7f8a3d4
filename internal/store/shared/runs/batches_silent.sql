-- Batches whose message counts as lost, among the running runs of the environment. They have been queued for at
-- least @silent, and one of two conditions is met.
-- 1. A batch that was queued later was claimed at least @silent ago, so the queue has passed them.
-- 2. Nothing was queued or claimed for @silent. Then only the first batch counts, as a probe for the others.
SELECT{{.Top}}
    b.batch_id, b.attempt
FROM {{.Prefix}}run AS r
CROSS JOIN {{.Prefix}}batch AS b
WHERE
    r.status = 'running' AND r.sys_name = @sys_name AND b.run_id = r.run_id AND b.status = 'queued'
    AND b.queued_at <= {{.Ago "silent"}}
    AND (
        b.queued_at < (
            SELECT MAX(c.queued_at)
            FROM {{.Prefix}}run AS o
            CROSS JOIN {{.Prefix}}batch AS c
            WHERE
                o.status = 'running' AND o.sys_name = @sys_name AND c.run_id = o.run_id
                AND c.claimed_at <= {{.Ago "silent"}}
                AND c.claimed_at >= c.queued_at
        )
        OR (
            b.serial_number = (
                SELECT MIN(c.serial_number)
                FROM {{.Prefix}}run AS o
                CROSS JOIN {{.Prefix}}batch AS c
                WHERE o.status = 'running' AND o.sys_name = @sys_name AND c.run_id = o.run_id AND c.status = 'queued'
            )
            AND NOT EXISTS (
                SELECT 1
                FROM {{.Prefix}}run AS o
                CROSS JOIN {{.Prefix}}batch AS c
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
ORDER BY b.serial_number{{.Limit}};
