-- How many batches and documents are in each status, in the order of a batch's life (requirements/004).
SELECT{{.Top}}
    b.batch_status,
    COUNT(*) AS batches,
    SUM(CAST(b.total_count AS bigint)) AS documents,
    MIN(b.updated_at) AS oldest_change,
    {{.Seconds "MIN(b.updated_at)" .Now}} AS oldest_seconds
FROM {{.Batch}} AS b
WHERE {{.Ours "b.run_id"}}
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
