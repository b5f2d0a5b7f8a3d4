-- Batches whose message the timer will send, by run, the longest waiting first (docs/requirements.md R85).
SELECT{{.Top}}
    b.parent_job_id,
    COUNT(*) AS pending_batches,
    MIN(b.created_at) AS oldest_batch,
    {{.Seconds "MIN(b.created_at)" .Now}} AS oldest_seconds,
    MAX(b.queue_attempt_count) AS max_attempts
FROM {{.Prefix}}processing_job AS b
WHERE
    b.batch_status = 'pending_retry'
    AND {{.OwnRuns "b.run_id"}}
GROUP BY b.parent_job_id
ORDER BY oldest_batch ASC, b.parent_job_id ASC{{.Limit}};
