-- Guarantees: the present values of every line with a detail row, in the order of the column table. Tracking
-- values are NULL for a line without a tracking row.
SELECT
    d.{{.DetailKey}} AS sqlwriter_line{{range .Columns}},
    {{if .InDetail}}d{{else}}t{{end}}.{{.Name}} AS {{.Label}}{{end}}
FROM (SELECT DISTINCT c.detail_id FROM #line AS c) AS s
INNER JOIN {{.DetailTable}} AS d ON d.{{.DetailKey}} = s.detail_id
LEFT JOIN {{.TrackingTable}} AS t ON t.{{.TrackingKey}} = s.detail_id
OPTION (LOOP JOIN, FORCE ORDER);
