-- Waiting batches and documents by the tables. The queue itself is not read (docs/requirements.md R85).
WITH waiting AS (
    SELECT
        COALESCE(SUM(CASE WHEN b.batch_status = 'queued' THEN 1 ELSE 0 END), 0) AS queued_batches,
        COALESCE(SUM(CASE WHEN b.batch_status = 'queued' THEN CAST(b.total_count AS bigint) END), 0) AS queued_documents,
        MIN(CASE WHEN b.batch_status = 'queued' THEN b.queued_at END) AS oldest_queued,
        COALESCE(SUM(CASE WHEN b.batch_status = 'queued' THEN 0 ELSE 1 END), 0) AS unsent_batches
    FROM {{.Batch}} AS b
    WHERE
        b.batch_status IN ('queued', 'pending_queue', 'pending_retry')
        AND {{.OwnRuns "b.run_id"}}
)

SELECT{{.Top}}
    w.queued_batches,
    w.queued_documents,
    w.oldest_queued,
    {{.Seconds "w.oldest_queued" .Now}} AS oldest_seconds,
    w.unsent_batches
FROM waiting AS w{{.Limit}};
