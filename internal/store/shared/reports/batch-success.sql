-- Results of the batches of each of the last 7 days (docs/requirements.md R85). In the original a queued batch is
-- successful. Here handed_off counts the batches that were queued, and the percentage is of those that ended.
WITH days AS (
    SELECT
        {{.Day "b.created_at"}} AS created_on,
        COUNT(*) AS total_batches,
        SUM(CASE WHEN b.batch_status IN ('queued', 'processing', 'completed') THEN 1 ELSE 0 END) AS handed_off_batches,
        SUM(CASE WHEN b.batch_status = 'completed' THEN 1 ELSE 0 END) AS successful_batches,
        SUM(CASE WHEN b.batch_status = 'failed' THEN 1 ELSE 0 END) AS failed_batches,
        SUM(CASE WHEN b.batch_status IN ('completed', 'failed') THEN 1 ELSE 0 END) AS ended_batches,
        AVG(CAST(b.queue_attempt_count AS float)) AS avg_attempts
    FROM {{.Prefix}}processing_job AS b
    WHERE
        b.created_at > {{.SecondsAgo 604800}}
        AND {{.OwnRuns "b.run_id"}}
    GROUP BY {{.Day "b.created_at"}}
)

SELECT{{.Top}}
    d.created_on,
    d.total_batches,
    d.handed_off_batches,
    d.successful_batches,
    d.failed_batches,
    {{.Percent "d.successful_batches" "d.ended_batches"}} AS success_percent,
    d.avg_attempts
FROM days AS d
ORDER BY d.created_on DESC{{.Limit}};
