-- Batches and documents by status, in the order of a batch's life (docs/requirements.md R85). Row queued is the depth
-- of the queue by the tables. stuck counts batches in processing without a heartbeat for
-- ten minutes, or released so long ago (docs/requirements.md R75). Ended batches count for 7 days, because their number
-- grows without end.
WITH batches AS (
    SELECT
        b.batch_status,
        b.total_count,
        b.updated_at,
        CASE
            WHEN b.batch_status <> 'processing' THEN 0
            WHEN
                COALESCE(b.last_heartbeat, b.updated_at)
                < {{.SecondsAgo 600}}
                THEN 1
            ELSE 0
        END AS is_stuck
    FROM {{.Prefix}}processing_job AS b
    WHERE
        b.batch_status IN ('pending_queue', 'pending_retry', 'queued', 'processing')
        AND {{.OwnRuns "b.run_id"}}
    UNION ALL
    SELECT
        b.batch_status,
        b.total_count,
        b.updated_at,
        0 AS is_stuck
    FROM {{.Prefix}}processing_job AS b
    WHERE
        {{.NoIndex}}b.batch_status IN ('completed', 'failed')
        AND b.process_end_time > {{.SecondsAgo 604800}}
        AND {{.OwnRuns "b.run_id"}}
)

SELECT{{.Top}}
    b.batch_status,
    COUNT(*) AS batches,
    SUM(CAST(b.total_count AS bigint)) AS documents,
    MIN(b.updated_at) AS oldest_change,
    {{.Seconds "MIN(b.updated_at)" .Now}} AS oldest_seconds,
    SUM(b.is_stuck) AS stuck
FROM batches AS b
GROUP BY b.batch_status
ORDER BY
    CASE b.batch_status
        WHEN 'pending_queue' THEN 1
        WHEN 'pending_retry' THEN 2
        WHEN 'queued' THEN 3
        WHEN 'processing' THEN 4
        WHEN 'completed' THEN 5
        ELSE 6
    END ASC{{.Limit}};
