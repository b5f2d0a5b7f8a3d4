-- The batches of a run that runs again: those that failed because it was cancelled, and those that wait, for a message that
-- came while it had ended is gone.
{{template "begin.sql" . -}}
UPDATE {{.Job}}
SET
{{template "again.sql" .}}
WHERE
    run_id = @run
    AND (
        status IN ('pending_queue', 'pending_retry', 'queued')
        OR (status = 'failed' AND error = @cancelled)
    );
