-- Says of a run that completed in this transaction that something is left to do.
{{template "begin.sql" . -}}
UPDATE {{.Prefix}}run
SET status = 'completed_with_failures'
WHERE run_id = @run AND status = 'completed';
