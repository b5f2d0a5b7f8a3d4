-- The batches of a run that failed by its cancellation.
SELECT b.batch_id
FROM {{.Prefix}}batch AS b
WHERE b.run_id = @run AND b.status = 'failed' AND b.error = @cancelled;
