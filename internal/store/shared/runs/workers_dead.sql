-- The running workers whose heartbeat is older than @stale.
SELECT{{.Top}}
    w.worker_id
FROM {{.Prefix}}worker AS w
INNER JOIN {{.Prefix}}run AS r ON r.run_id = w.run_id
WHERE
    w.status = 'RUNNING' AND r.sys_name = @sys_name AND r.status <> 'purged'
    AND w.heartbeat_at <= {{.Ago "stale"}}
ORDER BY w.worker_id{{.Limit}};
