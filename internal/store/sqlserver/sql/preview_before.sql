-- Guarantees: the present values of every line of the request that has a detail row, in the order of the column
-- table; tracking values are NULL where the line has no tracking row.
SELECT
    d.{{.DetailKey}} AS sqlwriter_line{{range .Columns}},
    {{if .InDetail}}d{{else}}t{{end}}.{{.Name}} AS {{.Label}}{{end}}
FROM (SELECT DISTINCT c.detail_id FROM #line AS c) AS s
INNER JOIN {{.DetailTable}} AS d ON d.{{.DetailKey}} = s.detail_id
LEFT JOIN {{.TrackingTable}} AS t ON t.{{.TrackingKey}} = s.detail_id
OPTION (LOOP JOIN, FORCE ORDER);
