-- Adds findings and suspects of a class that have no row, while the class has room. A row of @rows: line, key,
-- class, environment, mark, sure, detail, mends, document.
{{template "begin.sql" . -}}
INSERT INTO {{.Prefix}}finding (
    sys_name, class, detail_id, document_key, document_id, first_seen, last_seen, mark, sure, detail, mends
)
SELECT
    n.listed_sys, n.listed_class, n.listed_line, n.document_key, n.listed_document,
    {{.Now}}, {{.Now}}, n.listed_mark, n.listed_sure, n.listed_detail, n.listed_mends
FROM (
    SELECT
        l.listed_sys, l.listed_class, l.listed_line, l.listed_mark, l.listed_sure, l.listed_detail, l.listed_mends,
        l.listed_document, {{.Hash "l.listed_key"}} AS document_key,
        ROW_NUMBER() OVER (ORDER BY l.listed_line, l.listed_key) AS place
    FROM
        {{.NestedList "rows" "listed_line bigint" "listed_key int" "listed_class varchar(40)" "listed_sys nvarchar(256)" "listed_mark varchar(64)" "listed_sure bit" "listed_detail nvarchar(1000)" "listed_mends bit" "listed_document nvarchar(1023)"}} AS l
    WHERE NOT EXISTS (
        SELECT 1 FROM {{.Prefix}}finding AS x
        WHERE
            x.sys_name = l.listed_sys{{.BinaryCollation}} AND x.class = l.listed_class{{.BinaryCollation}}
            AND x.detail_id = l.listed_line
            AND x.document_key = {{.Hash "l.listed_key"}}
    )
) AS n
WHERE
    n.place <= @most - (SELECT COUNT(*) FROM {{.Prefix}}finding AS o WHERE o.sys_name = @sys_name AND o.class = @class);
