-- Batches of the last hour by run and status, and their time from message to first claim (docs/requirements.md
-- R85). A batch that was claimed before its message was recorded has no such time.
WITH batches AS (
    SELECT
        {{.NoIndex}}b.run_id AS parent_job_id,
        b.batch_status,
        b.created_at,
        CASE WHEN b.process_start_time >= b.queued_at THEN b.process_start_time END AS started_at,
        b.queued_at
    FROM {{.Prefix}}processing_job AS b
    WHERE
        b.created_at > {{.SecondsAgo 3600}}
        AND {{.OwnRuns "b.run_id"}}
)

SELECT{{.Top}}
    b.parent_job_id,
    SUM(CASE WHEN b.batch_status = 'pending_queue' THEN 1 ELSE 0 END) AS pending,
    SUM(CASE WHEN b.batch_status = 'pending_retry' THEN 1 ELSE 0 END) AS pending_retry,
    SUM(CASE WHEN b.batch_status = 'queued' THEN 1 ELSE 0 END) AS queued,
    SUM(CASE WHEN b.batch_status = 'processing' THEN 1 ELSE 0 END) AS processing,
    SUM(CASE WHEN b.batch_status = 'completed' THEN 1 ELSE 0 END) AS completed,
    SUM(CASE WHEN b.batch_status = 'failed' THEN 1 ELSE 0 END) AS failed,
    AVG({{.Seconds "b.queued_at" "b.started_at"}}) AS avg_lag_seconds
FROM batches AS b
GROUP BY b.parent_job_id
ORDER BY MIN(b.created_at) ASC, b.parent_job_id ASC{{.Limit}};
