-- Failed batches and their errors, the latest first. An operator may requeue them.
SELECT{{.Top}}
    b.run_id,
    b.batch_number,
    b.batch_id,
    b.total_count,
    b.error_message,
    b.queue_attempt_count,
    b.last_queue_error,
    b.updated_at
FROM {{.Batch}} AS b
WHERE
    b.batch_status = 'failed'
    AND {{.OwnRuns "b.run_id"}}
ORDER BY b.updated_at DESC, b.run_id ASC, b.batch_number ASC{{.Limit}};
