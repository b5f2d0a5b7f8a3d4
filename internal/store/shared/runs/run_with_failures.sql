-- Says of a run that completed in this transaction that something failed or was deferred.
{{template "begin.sql" . -}}
UPDATE {{.Prefix}}run
SET status = 'completed_with_failures'
WHERE run_id = @run AND status = 'completed';
