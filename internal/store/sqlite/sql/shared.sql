{{/* Sources that several statements share. CROSS JOIN fixes the order: the small staged table comes first. */ -}}
{{define "winners"}}(
    SELECT r.detail_id, r.row_hash, i.*, w.write_id, w.sent_at
    FROM {{.Row}} AS r CROSS JOIN {{.Item}} AS i CROSS JOIN {{.Send}} AS w
    WHERE r.winner = 1 AND i.doc = r.doc
){{end -}}
{{define "applied"}}(
    SELECT r.detail_id{{range .LineColumns}}, r.{{.Staged}}{{end}}, i.*
    FROM {{.Row}} AS r CROSS JOIN {{.Item}} AS i
    WHERE r.winner = 1 AND r.verdict = 'applied' AND i.doc = r.doc
){{end -}}
