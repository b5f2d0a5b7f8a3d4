-- Sets the final status of a running worker. Its heartbeat remains the time of its last sign of life.
{{template "begin.sql" . -}}
UPDATE {{.Prefix}}worker
SET status = @status, completed_at = CASE WHEN @status = 'IDLE' THEN completed_at ELSE {{.Now}} END
WHERE worker_id = @owner AND status = 'RUNNING';
