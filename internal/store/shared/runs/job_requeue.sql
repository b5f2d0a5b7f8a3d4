-- A failed batch is wanted again. Whoever still thinks that it has it has another epoch, and its next message another id.
{{template "begin.sql" . -}}
UPDATE {{.Batch}}
SET
{{template "next_attempt.sql" .}}
WHERE job_id = @job AND status = 'failed';
