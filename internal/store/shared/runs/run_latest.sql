-- The latest runs of an environment by number, which always grows, or those before one.
-- Long filters that name documents are left out.
SELECT{{.Top}}
{{template "run_columns.sql" .}},
    {{template "listed_filter.sql" .}}
FROM {{.Prefix}}run AS r
WHERE
    r.sys_name = @sys_name
    AND r.run_number < CASE
        WHEN @before_run = '' THEN 9223372036854775807
        ELSE (SELECT b.run_number FROM {{.Prefix}}run AS b WHERE b.run_id = @before_run)
    END
ORDER BY r.run_number DESC{{.Limit}};
