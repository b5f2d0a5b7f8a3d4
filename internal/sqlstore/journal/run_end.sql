-- The last status of a run that has none yet: the first one stays.
{{template "begin.sql" . -}}
UPDATE {{.Run}}
SET status = @status, counts = @counts, heartbeat_at = {{.Now}}, ended_at = {{.Now}}
WHERE run_id = @id AND status = 'running';
