-- The health of managers and workers (requirements/004). Active and dead ones are both RUNNING: the dead ones have said
-- nothing for ten minutes (requirements/001, section 3).
WITH workers AS (
    SELECT
        w.kind,
        CASE
            WHEN w.status = 'RUNNING' AND w.heartbeat_at < {{.Ago .DeadSeconds}} THEN 'DEAD'
            ELSE w.status
        END AS health,
        w.documents_processed,
        w.heartbeat_at
    FROM {{.Worker}} AS w
    WHERE {{.Ours "w.run_id"}}
)

SELECT{{.Top}}
    w.kind,
    SUM(CASE WHEN w.health = 'RUNNING' THEN 1 ELSE 0 END) AS active,
    SUM(CASE WHEN w.health = 'DEAD' THEN 1 ELSE 0 END) AS dead,
    SUM(CASE WHEN w.health = 'IDLE' THEN 1 ELSE 0 END) AS idle,
    SUM(CASE WHEN w.health = 'COMPLETED' THEN 1 ELSE 0 END) AS completed,
    SUM(CASE WHEN w.health = 'FAILED' THEN 1 ELSE 0 END) AS failed,
    SUM(CAST(w.documents_processed AS bigint)) AS documents_processed,
    MAX(w.heartbeat_at) AS last_heartbeat
FROM workers AS w
GROUP BY w.kind
ORDER BY w.kind ASC{{.Limit}};
