-- Reads one batch.
SELECT
{{template "batch_columns.sql" .}}
WHERE b.batch_id = @batch;
