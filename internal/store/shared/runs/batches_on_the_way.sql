-- Counts the batches of an environment's running runs that are queued or processing, those to retry, and the
-- runs with more to hand off.
SELECT
    (
        SELECT COUNT(*)
        FROM {{.Prefix}}run AS r
        CROSS JOIN {{.Prefix}}batch AS b
        WHERE
            r.status = 'running' AND r.sys_name = @sys_name AND b.run_id = r.run_id
            AND b.status IN ('queued', 'processing')
    ) AS busy,
    (
        SELECT COUNT(*)
        FROM {{.Prefix}}run AS r
        CROSS JOIN {{.Prefix}}batch AS b
        WHERE r.status = 'running' AND r.sys_name = @sys_name AND b.run_id = r.run_id AND b.status = 'pending_retry'
    ) AS retries,
    (
        SELECT COUNT(*)
        FROM {{.Prefix}}run AS r
        WHERE
            r.status = 'running' AND r.sys_name = @sys_name AND r.cancel = 0 AND r.handed_off_at IS NULL
    ) AS handing_off;
