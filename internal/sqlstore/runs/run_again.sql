-- A completed run of which a batch is wanted again runs again.
{{template "begin.sql" . -}}
UPDATE {{.Run}}
SET status = 'running', cancel = 0, ended_at = NULL
WHERE run_id = @run AND status = 'completed';
