-- One run with its filter and its watermark, which may be long.
SELECT
{{template "run_columns.sql" .}},
    r.filter, r.watermark
FROM {{.Prefix}}run AS r
WHERE r.run_id = @run;
