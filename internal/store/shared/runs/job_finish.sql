-- Ends a batch that the worker has, with its counts.
{{template "begin.sql" . -}}
UPDATE {{.Batch}}
SET
    status = @status, error = NULLIF(@error, ''), success_count = @success, failure_count = @failure,
    process_end_time = {{.Now}}, updated_at = {{.Now}}
{{template "batch_leased.sql" . -}}
