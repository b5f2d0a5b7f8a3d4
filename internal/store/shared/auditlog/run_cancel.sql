-- Asks a running run of the environment to end. The heartbeat stays, because only the run renews it.
{{template "begin.sql" . -}}
UPDATE {{.Run}}
SET cancel = 1
WHERE run_id = @id AND status = 'running' AND sys_name = @sys_name;
