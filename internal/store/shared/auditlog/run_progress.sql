-- Saves the counts of a run of the environment that has not ended.
{{template "begin.sql" . -}}
UPDATE {{.Run}}
SET counts = @counts, heartbeat_at = {{.Now}}
WHERE run_id = @id AND status = 'running' AND sys_name = @sys_name;
