-- The batches of a run that wait. Their index has all that is asked for: nothing waits here for the lock on a row while it
-- has one on the index, as a reader that looks up more would beside whoever changes the row first.
SELECT j.job_id
FROM {{.Batch}} AS j
WHERE j.run_id = @run AND j.status IN ('pending_queue', 'pending_retry', 'queued');
