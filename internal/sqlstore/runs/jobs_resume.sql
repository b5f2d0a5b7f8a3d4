-- The batches of a run that failed because it was cancelled are wanted again.
{{template "begin.sql" . -}}
UPDATE {{.Job}}
SET
{{template "again.sql" .}}
WHERE run_id = @run AND status = 'failed' AND error = @cancelled;
