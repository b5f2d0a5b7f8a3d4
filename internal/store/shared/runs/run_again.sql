-- Lets a completed run continue after a batch was requeued, with more to hand off.
{{template "begin.sql" . -}}
UPDATE {{.Prefix}}run
SET
    cancel = CASE WHEN status = 'running' THEN cancel ELSE 0 END, status = 'running', ended_at = NULL,
    handed_off_at = NULL
WHERE run_id = @run AND status IN ('running', 'completed', 'completed_with_failures');
