-- The batches of a run that do not go on by themselves when it runs again: those that failed because it was cancelled, and
-- those that wait, for a message that came while it had ended is gone.
SELECT j.job_id
FROM {{.Job}} AS j
WHERE
    j.run_id = @run
    AND (
        j.status IN ('pending_queue', 'pending_retry', 'queued')
        OR (j.status = 'failed' AND j.error = @cancelled)
    );
