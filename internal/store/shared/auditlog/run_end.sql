-- Sets the final status of a run of the environment. A final status never changes.
{{template "begin.sql" . -}}
UPDATE {{.Run}}
SET status = @status, counts = @counts, heartbeat_at = {{.Now}}, ended_at = {{.Now}}
WHERE run_id = @id AND status = 'running' AND sys_name = @sys_name;
