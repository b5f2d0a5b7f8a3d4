-- Lets a failed or cancelled run continue; a manager sends its messages. A new epoch ends older leases.
{{template "begin.sql" . -}}
UPDATE {{.Prefix}}run
SET
    status = 'running', cancel = 0, owner = NULL, ended_at = NULL, error = NULL, epoch = epoch + 1, lost_managers = 0,
    handed_off_at = NULL
WHERE run_id = @run AND status IN ('failed', 'cancelled');
