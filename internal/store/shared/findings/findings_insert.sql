-- Adds findings of a class that a run saw and that have no row, while the class has room. A row of @rows: line,
-- key, class, environment, row hash, detail, mend, document.
{{template "begin.sql" . -}}
INSERT INTO {{.Finding}} (
    sys_name, class, detail_id, document_key, document_id, state, first_seen, last_seen, run_id, row_hash, detail, mend
)
SELECT
    n.listed_sys, n.listed_class, n.listed_line, n.listed_key, n.listed_document, 'open',
    {{.Now}}, {{.Now}}, @run, n.listed_hash, n.listed_detail, n.listed_mend
FROM (
    SELECT
        l.listed_sys, l.listed_class, l.listed_line, l.listed_key, l.listed_hash, l.listed_detail, l.listed_mend,
        l.listed_document, ROW_NUMBER() OVER (ORDER BY l.listed_line, l.listed_key) AS place
    FROM
        {{.NestedList "rows" "listed_line bigint" "listed_key char(64)" "listed_class varchar(40)" "listed_sys nvarchar(256)" "listed_hash varchar(128)" "listed_detail nvarchar(1000)" "listed_mend varchar(10)" "listed_document nvarchar(1023)"}} AS l
    WHERE NOT EXISTS (
        SELECT 1 FROM {{.Finding}} AS x
        WHERE
            {{template "listed_known.sql" .}}
    )
) AS n
WHERE
    {{template "room.sql" .}};
