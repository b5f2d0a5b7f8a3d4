-- The batches of a run that failed by its cancellation after a worker had begun. The others have no outcomes.
SELECT b.batch_id
FROM {{.Prefix}}batch AS b
WHERE b.run_id = @run AND b.status = 'failed' AND b.error = @cancelled AND b.process_start_time IS NOT NULL;
