-- The batches of a run that failed by its cancellation.
SELECT b.batch_id
FROM {{.Batch}} AS b
WHERE b.run_id = @run AND b.status = 'failed' AND b.error = @cancelled;
