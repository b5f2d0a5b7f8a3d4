-- One run without its long columns.
SELECT
{{template "run_columns.sql" .}}
FROM {{.Prefix}}run AS r
WHERE r.run_id = @run;
