-- One run without what may be long.
SELECT
{{template "run_columns.sql" .}}
FROM {{.Run}} AS r
WHERE r.run_id = @run;
