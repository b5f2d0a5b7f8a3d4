-- Makes findings gone that a run found gone and did not see, and counts those that it made gone before. A row of
-- @rows: line, key, class, environment.
{{template "begin.sql" . -}}
{{.Update .Finding "f"}}
SET state = 'gone', run_id = @run
FROM
    {{.List "rows" "listed_line bigint" "listed_key char(64)" "listed_class varchar(40)" "listed_sys nvarchar(256)"}} AS n
{{.JoinTarget .Finding "f"}}WHERE
{{template "listed_target.sql" .}}
    AND ((f.state = 'gone' AND f.run_id = @run) OR (f.state <> 'gone' AND f.run_id <> @run)){{.ForceOrder}};
