-- Batches with a heartbeat older than @stale, or released longer than @released ago.
SELECT{{.Top}}
    j.job_id, j.attempt
FROM {{.Batch}} AS j
INNER JOIN {{.Run}} AS r ON r.run_id = j.run_id
WHERE
    j.status = 'processing' AND r.sys_name = @sys_name AND r.status <> 'purged'
    AND (
        (j.owner IS NOT NULL AND j.heartbeat_at <= {{.Ago "stale"}})
        OR (j.owner IS NULL AND j.updated_at <= {{.Ago "released"}})
    )
ORDER BY j.job_number{{.Limit}};
