-- Says of known findings and suspects what a look saw. A finding stays one. A row of @rows: line, key, class,
-- environment, mark, sure, detail, mends.
{{template "begin.sql" . -}}
{{.Update "finding" "f"}}
SET
    last_seen = {{.Now}}, mark = n.listed_mark, detail = n.listed_detail, mends = n.listed_mends,
    sure = CASE WHEN n.listed_sure = 1 THEN 1 ELSE f.sure END
FROM
    {{.List "rows" "listed_line bigint" "listed_key int" "listed_class varchar(40)" "listed_sys nvarchar(256)" "listed_mark varchar(64)" "listed_sure bit" "listed_detail nvarchar(1000)" "listed_mends bit"}} AS n
{{.JoinTarget "finding" "f"}}WHERE
    f.sys_name = n.listed_sys{{.BinaryCollation}} AND f.class = n.listed_class{{.BinaryCollation}}
    AND f.detail_id = n.listed_line
    AND f.document_key = {{.Hash "n.listed_key"}}{{.ForceOrder}};
