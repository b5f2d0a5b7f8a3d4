-- The batches of a run that failed by its cancellation after a worker had begun. The others have no outcomes.
SELECT j.job_id
FROM {{.Batch}} AS j
WHERE j.run_id = @run AND j.status = 'failed' AND j.error = @cancelled AND j.process_start_time IS NOT NULL;
