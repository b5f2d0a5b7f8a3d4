-- One run, with all that was asked for and how far that was looked for: either may be long.
SELECT
{{template "run_columns.sql" .}},
    r.filter, r.watermark
FROM {{.Run}} AS r
WHERE r.run_id = @run;
