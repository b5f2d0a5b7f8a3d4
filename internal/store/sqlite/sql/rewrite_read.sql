-- Guarantees: each line that has a ledger row and that a rewrite would write, with the ledger's hashes and the values
-- of both rows as text, in the order of the column table. keep_status is 1 where a write would say unchanged.
-- tracked is 1 for a line with a tracking row; the others have NULL as its values. The content's hash is NULL of an
-- older document.
SELECT
    s.doc, s.position, NOT ({{template "newer" .}} OR {{template "other" .}}) AS keep_status,
    iif({{template "newer" .}}, NULL, l.content_hash), l.hash_version, l.detail_row_hash, l.tracking_row_hash, t.{{.TrackingKey}} IS NOT NULL AS tracked{{range .Columns}},
    CAST({{if .InDetail}}d{{else}}t{{end}}.{{.Name}} AS TEXT){{end}}
FROM
    (SELECT r.detail_id, r.position, i.* FROM {{.Row}} AS r CROSS JOIN {{.Item}} AS i WHERE i.doc = r.doc) AS s
    CROSS JOIN {{.Ledger}} AS l
    CROSS JOIN {{.DetailTable}} AS d
    LEFT JOIN {{.TrackingTable}} AS t ON t.{{.TrackingKey}} = d.{{.DetailKey}}
WHERE
    s.mark = 0 AND l.detail_id = s.detail_id AND d.{{.DetailKey}} = s.detail_id
    AND ({{template "newer" .}} OR ({{template "same" .}}) OR {{template "released" .}});
