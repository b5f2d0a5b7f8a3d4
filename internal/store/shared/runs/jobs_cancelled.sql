-- The batches of a run that failed by its cancellation.
SELECT j.job_id
FROM {{.Batch}} AS j
WHERE j.run_id = @run AND j.status = 'failed' AND j.error = @cancelled;
