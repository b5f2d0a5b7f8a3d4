-- One run without its long columns.
SELECT
{{template "run_columns.sql" .}}
FROM {{.Run}} AS r
WHERE r.run_id = @run;
