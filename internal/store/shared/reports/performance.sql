-- Batches completed in the last hour, day and week (docs/requirements.md R85). A batch's time is from first
-- claim to end. Documents per second are from the first claim to the last end. The percentage is of the
-- successful documents.
WITH periods AS (
    SELECT 1 AS last_hours, {{.SecondsAgo 3600}} AS since
    UNION ALL
    SELECT 24 AS last_hours, {{.SecondsAgo 86400}} AS since
    UNION ALL
    SELECT 168 AS last_hours, {{.SecondsAgo 604800}} AS since
),

completed AS (
    SELECT
        b.batch_id,
        b.total_count,
        b.success_count,
        b.failure_count,
        b.process_start_time,
        b.process_end_time
    FROM {{.Prefix}}processing_job AS b
    WHERE
        {{.NoIndex}}b.batch_status = 'completed'
        AND b.process_end_time > {{.SecondsAgo 604800}}
        AND {{.OwnRuns "b.run_id"}}
),

sums AS (
    SELECT
        p.last_hours,
        COUNT(b.batch_id) AS batches,
        COALESCE(SUM(CAST(b.total_count AS bigint)), 0) AS documents,
        SUM(CAST(b.success_count AS bigint)) AS success,
        SUM(CAST(b.success_count AS bigint) + b.failure_count) AS outcomes,
        AVG({{.Seconds "b.process_start_time" "b.process_end_time"}}) AS avg_seconds,
        {{.Seconds "MIN(b.process_start_time)" "MAX(b.process_end_time)"}} AS span_seconds
    FROM periods AS p
    LEFT OUTER JOIN completed AS b ON b.process_end_time > p.since
    GROUP BY p.last_hours
)

SELECT{{.Top}}
    s.last_hours,
    s.batches AS completed_batches,
    s.documents,
    s.avg_seconds AS avg_batch_seconds,
    s.documents / NULLIF(s.span_seconds, 0) AS documents_per_second,
    {{.Percent "s.success" "s.outcomes"}} AS success_percent
FROM sums AS s
ORDER BY s.last_hours ASC{{.Limit}};
