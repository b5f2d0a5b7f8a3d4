-- The running runs of an environment, oldest first, without their long columns.
SELECT{{.Top}}
{{template "run_columns.sql" .}}
FROM {{.Prefix}}run AS r
WHERE r.status = 'running' AND r.sys_name = @sys_name
ORDER BY r.run_number{{.Limit}};
