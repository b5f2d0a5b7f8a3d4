-- Accepts findings that are not gone, with the row hash that they have. A row of @rows: line, key, class,
-- environment.
{{template "begin.sql" . -}}
{{.Update .Finding "f"}}
SET state = 'accepted', accepted_hash = f.row_hash, accepted_by = @by, why = @why
FROM
    {{.List "rows" "listed_line bigint" "listed_key char(64)" "listed_class varchar(40)" "listed_sys nvarchar(256)"}} AS n
{{.JoinTarget .Finding "f"}}WHERE
{{template "listed_target.sql" .}}
    AND f.state <> 'gone'{{.ForceOrder}};
