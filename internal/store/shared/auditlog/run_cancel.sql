-- Asks a running run of the environment to end. Its heartbeat is its own.
{{template "begin.sql" . -}}
UPDATE {{.Run}}
SET cancel = 1
WHERE run_id = @id AND status = 'running' AND sys_name = @sys_name;
