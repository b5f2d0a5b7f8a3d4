-- A worker lives.
{{template "begin.sql" . -}}
UPDATE {{.Worker}}
SET heartbeat_at = {{.Now}}
WHERE worker_id = @owner;
