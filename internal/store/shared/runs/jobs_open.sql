-- The open batches of a run.
SELECT j.job_id
FROM {{.Batch}} AS j
WHERE j.run_id = @run AND j.status IN ('pending_queue', 'pending_retry', 'queued', 'processing');
