-- Opens known findings of a class that a run saw and that are not open, while the class has room. A row of @rows:
-- line, key, class, environment, row hash.
{{template "begin.sql" . -}}
{{.Update .Finding "f"}}
SET state = 'open', first_seen = {{.Now}}, queued_by = NULL
FROM (
    SELECT
        l.listed_sys, l.listed_class, l.listed_line, l.listed_key,
        ROW_NUMBER() OVER (ORDER BY l.listed_line, l.listed_key) AS place
    FROM
        {{.NestedList "rows" "listed_line bigint" "listed_key char(64)" "listed_class varchar(40)" "listed_sys nvarchar(256)" "listed_hash varchar(128)"}} AS l
    INNER JOIN {{.Finding}} AS x
        ON
            {{template "listed_known.sql" .}}
    WHERE x.state = 'gone' OR (x.state = 'accepted' AND x.accepted_hash <> l.listed_hash{{.BinaryCollation}})
) AS n
{{.JoinTarget .Finding "f"}}WHERE
{{template "listed_target.sql" .}}
    AND f.state <> 'open' AND {{template "room.sql" .}}{{.ForceOrder}};
