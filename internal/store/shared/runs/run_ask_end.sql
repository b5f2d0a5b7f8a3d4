-- Asks a running run to end. Its heartbeat is its own.
{{template "begin.sql" . -}}
UPDATE {{.Run}}
SET cancel = 1
WHERE run_id = @run AND status = 'running';
