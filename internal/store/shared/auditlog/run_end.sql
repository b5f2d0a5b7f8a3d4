-- The last status of a run of the environment that has none yet: the first one stays.
{{template "begin.sql" . -}}
UPDATE {{.Run}}
SET status = @status, counts = @counts, heartbeat_at = {{.Now}}, ended_at = {{.Now}}
WHERE run_id = @id AND status = 'running' AND sys_name = @sys_name;
