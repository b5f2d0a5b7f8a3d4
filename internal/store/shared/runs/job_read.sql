-- Reads one batch.
SELECT
{{template "job_columns.sql" .}}
WHERE j.job_id = @job;
