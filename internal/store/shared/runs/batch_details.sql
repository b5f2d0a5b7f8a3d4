-- The latest error details of a batch, newest first.
SELECT{{.Top}}
    e.document_id, COALESCE(e.entity_id, 0) AS entity_id, e.error_code, e.error_message, e.error_type,
    e.retry_count, e.is_retryable, e.created_at
FROM {{.Prefix}}error_detail AS e
WHERE e.batch_id = @batch
ORDER BY e.error_id DESC{{.Limit}};
