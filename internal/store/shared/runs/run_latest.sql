-- The latest runs of an environment, newest first: their numbers grow, whatever the clock does.
-- They come without what may be long: a filter of workers that names documents.
SELECT{{.Top}}
{{template "run_columns.sql" .}},
    {{template "listed_filter.sql" .}}
FROM {{.Run}} AS r
WHERE r.sys_name = @sys_name
ORDER BY r.run_number DESC{{.Limit}};
