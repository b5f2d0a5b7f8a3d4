-- Fails a batch that the worker has.
{{template "begin.sql" . -}}
UPDATE {{.Prefix}}batch
SET status = 'failed', error = @reason, process_end_time = {{.Now}}, updated_at = {{.Now}}
{{template "batch_leased.sql" . -}}
