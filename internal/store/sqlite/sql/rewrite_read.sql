-- Guarantees: each line that has a ledger row and that a rewrite would write, with the ledger's hashes and the values
-- of both rows as text, in the order of the column table. keep_status is 1 where a write would say unchanged.
-- tracked is 1 for a line with a tracking row; the others have NULL as its values.
SELECT
    r.doc, r.position, NOT ({{template "newer" .}} OR {{template "other" .}}) AS keep_status,
    l.hash_version, l.detail_row_hash, l.tracking_row_hash, t.{{.TrackingKey}} IS NOT NULL AS tracked{{range .Columns}},
    CAST({{if .InDetail}}d{{else}}t{{end}}.{{.Name}} AS TEXT){{end}}
FROM
    {{.Row}} AS r
    CROSS JOIN {{.Item}} AS s
    CROSS JOIN {{.Ledger}} AS l
    CROSS JOIN {{.DetailTable}} AS d
    LEFT JOIN {{.TrackingTable}} AS t ON t.{{.TrackingKey}} = d.{{.DetailKey}}
WHERE
    s.doc = r.doc AND s.mark = 0 AND l.detail_id = r.detail_id AND d.{{.DetailKey}} = r.detail_id
    AND ({{template "newer" .}} OR ({{template "same" .}}));
