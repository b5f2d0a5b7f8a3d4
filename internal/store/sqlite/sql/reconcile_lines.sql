-- Guarantees: a row for each line of @lines, [[id] ...], with its ledger row and its present rows, as far as they exist.
SELECT
    s.detail_id, {{template "compared" .}}
FROM
    (SELECT value ->> '$[0]' AS detail_id FROM json_each(@lines)) AS s
    LEFT JOIN {{.Ledger}} AS l ON l.detail_id = s.detail_id
    LEFT JOIN {{.DetailTable}} AS d ON d.{{.DetailKey}} = s.detail_id
    LEFT JOIN {{.TrackingTable}} AS t ON t.{{.TrackingKey}} = s.detail_id;
