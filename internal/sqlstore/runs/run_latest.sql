-- The latest runs, newest first: their numbers grow, whatever the clock does.
SELECT{{.Top}}
{{template "run_columns.sql" .}}
ORDER BY r.run_number DESC{{.Limit}};
