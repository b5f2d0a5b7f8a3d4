-- The open batches of a run that was cancelled.
{{template "begin.sql" . -}}
UPDATE {{.Job}}
SET status = 'failed', error = @cancelled, process_end_time = {{.Now}}, updated_at = {{.Now}}
WHERE run_id = @run AND status IN ('pending_queue', 'pending_retry', 'queued', 'processing');
