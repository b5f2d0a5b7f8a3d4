-- A failed or cancelled run runs again, and a manager sends its messages. Whoever still thinks that it has it has another
-- epoch.
{{template "begin.sql" . -}}
UPDATE {{.Run}}
SET
    status = 'running', cancel = 0, owner = NULL, ended_at = NULL, error = NULL, epoch = epoch + 1, lost_managers = 0,
    handed_off_at = NULL
WHERE run_id = @run AND pattern IS NOT NULL AND status IN ('failed', 'cancelled');
