-- A running worker gets its next status; one that ended stays as it is. The heartbeat says when it was last heard of.
{{template "begin.sql" . -}}
UPDATE {{.Worker}}
SET status = @status, completed_at = CASE WHEN @status = 'IDLE' THEN completed_at ELSE {{.Now}} END
WHERE worker_id = @owner AND status = 'RUNNING';
