-- A failed or cancelled run runs again. Whoever still thinks that it has it has another epoch.
{{template "begin.sql" . -}}
UPDATE {{.Run}}
SET status = 'running', cancel = 0, owner = NULL, ended_at = NULL, error = NULL, epoch = epoch + 1, lost_managers = 0
WHERE run_id = @run AND pattern IS NOT NULL AND status IN ('failed', 'cancelled');
