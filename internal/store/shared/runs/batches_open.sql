-- The open batches of a run.
SELECT b.batch_id
FROM {{.Prefix}}batch AS b
WHERE b.run_id = @run AND b.status IN ('pending_queue', 'pending_retry', 'queued', 'processing');
