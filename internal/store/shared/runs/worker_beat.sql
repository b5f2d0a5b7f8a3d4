-- Renews the heartbeat of a running worker.
{{template "begin.sql" . -}}
UPDATE {{.Prefix}}worker
SET heartbeat_at = {{.Now}}
WHERE worker_id = @owner;
