-- One run with its filter and its watermark, which may be long.
SELECT
{{template "run_columns.sql" .}},
    r.filter, r.watermark
FROM {{.Run}} AS r
WHERE r.run_id = @run;
