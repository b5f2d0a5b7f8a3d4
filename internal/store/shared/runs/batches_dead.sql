-- Batches with a heartbeat older than @stale, or released longer than @released ago.
SELECT{{.Top}}
    b.batch_id, b.attempt
FROM {{.Prefix}}batch AS b
INNER JOIN {{.Prefix}}run AS r ON r.run_id = b.run_id
WHERE
    b.status = 'processing' AND r.sys_name = @sys_name AND r.status <> 'purged'
    AND (
        (b.owner IS NOT NULL AND b.heartbeat_at <= {{.Ago "stale"}})
        OR (b.owner IS NULL AND b.updated_at <= {{.Ago "released"}})
    )
ORDER BY b.serial_number{{.Limit}};
