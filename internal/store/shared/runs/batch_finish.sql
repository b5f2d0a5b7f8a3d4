-- Ends a batch that the worker has, with its counts. A completed one stays completed, and @outcomes is final.
{{template "begin.sql" . -}}
UPDATE {{.Prefix}}batch
SET
    status = @status, error = NULLIF(@error, ''), success_count = @success, failure_count = @failure,
    outcomes = NULLIF(@outcomes, ''),
    process_end_time = {{.Now}}, updated_at = {{.Now}}
{{template "batch_leased.sql" . -}}
