-- Guarantees: the present values of every line with a detail row, as text and in the order of the column table.
-- Tracking values are NULL for a line without a tracking row.
SELECT
    r.detail_id{{range .Columns}},
    CAST({{if .InDetail}}d{{else}}t{{end}}.{{.Name}} AS TEXT){{end}}
FROM
    (SELECT DISTINCT c.detail_id FROM {{.Row}} AS c WHERE c.missing = 0) AS r
    CROSS JOIN {{.DetailTable}} AS d
    LEFT JOIN {{.TrackingTable}} AS t ON t.{{.TrackingKey}} = d.{{.DetailKey}}
WHERE d.{{.DetailKey}} = r.detail_id;
