-- The health of managers and workers (docs/requirements.md R85). Active and dead workers are RUNNING. The dead
-- ones have had no heartbeat for ten minutes (docs/requirements.md R75). The others are those that began in the
-- last 7 days, because each claim adds one. silent_seconds is the longest silence of a dead one.
WITH workers AS (
    SELECT
        w.kind,
        CASE
            WHEN w.heartbeat_at < {{.SecondsAgo 600}} THEN 'DEAD'
            ELSE w.status
        END AS health,
        w.documents_processed,
        w.heartbeat_at,
        CASE
            WHEN w.heartbeat_at < {{.SecondsAgo 600}} THEN w.heartbeat_at
        END AS dead_since
    FROM {{.Prefix}}worker AS w
    WHERE
        w.status = 'RUNNING'
        AND {{.OwnRuns "w.run_id"}}
    UNION ALL
    SELECT
        w.kind,
        w.status AS health,
        w.documents_processed,
        w.heartbeat_at,
        NULL AS dead_since
    FROM {{.Prefix}}worker AS w
    WHERE
        w.status <> 'RUNNING' AND w.started_at > {{.SecondsAgo 604800}}
        AND {{.OwnRuns "w.run_id"}}
)

SELECT{{.Top}}
    h.kind,
    SUM(CASE WHEN h.health = 'RUNNING' THEN 1 ELSE 0 END) AS active,
    SUM(CASE WHEN h.health = 'DEAD' THEN 1 ELSE 0 END) AS dead,
    {{.Seconds "MIN(h.dead_since)" .Now}} AS silent_seconds,
    SUM(CASE WHEN h.health = 'IDLE' THEN 1 ELSE 0 END) AS idle,
    SUM(CASE WHEN h.health = 'COMPLETED' THEN 1 ELSE 0 END) AS completed,
    SUM(CASE WHEN h.health = 'FAILED' THEN 1 ELSE 0 END) AS failed,
    SUM(CAST(h.documents_processed AS bigint)) AS documents_processed,
    MAX(h.heartbeat_at) AS last_heartbeat
FROM workers AS h
GROUP BY h.kind
ORDER BY h.kind ASC{{.Limit}};
