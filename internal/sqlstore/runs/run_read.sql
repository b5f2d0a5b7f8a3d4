-- One run.
SELECT
{{template "run_columns.sql" .}}
WHERE r.run_id = @run;
