-- The latest runs of an environment by number, which always grows. Long filters that name documents are left out.
SELECT{{.Top}}
{{template "run_columns.sql" .}},
    {{template "listed_filter.sql" .}}
FROM {{.Run}} AS r
WHERE r.sys_name = @sys_name
ORDER BY r.run_number DESC{{.Limit}};
