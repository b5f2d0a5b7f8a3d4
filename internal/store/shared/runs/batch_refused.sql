-- Fails a batch whose message the queue refused too often.
{{template "begin.sql" . -}}
UPDATE {{.Prefix}}batch
SET
    status = 'failed', attempt = attempt + 1, queue_attempt_count = queue_attempt_count + 1, last_queue_error = @reason,
    error = @given_up, process_end_time = {{.Now}}, updated_at = {{.Now}}
WHERE
    batch_id = @batch AND attempt = @attempt AND status IN ('pending_queue', 'pending_retry', 'queued')
    AND queue_attempt_count + 1 >= @most;
