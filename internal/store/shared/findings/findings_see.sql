-- Says of findings that are not gone what a run saw. A row of @rows: line, key, class, environment, row
-- hash, detail, mend.
{{template "begin.sql" . -}}
{{.Update .Finding "f"}}
SET
    last_seen = {{.Now}}, run_id = @run, row_hash = n.listed_hash, detail = n.listed_detail, mend = n.listed_mend
FROM
    {{.List "rows" "listed_line bigint" "listed_key char(64)" "listed_class varchar(40)" "listed_sys nvarchar(256)" "listed_hash varchar(128)" "listed_detail nvarchar(1000)" "listed_mend varchar(10)"}} AS n
{{.JoinTarget .Finding "f"}}WHERE
{{template "listed_target.sql" .}}
    AND f.state <> 'gone'{{.ForceOrder}};
