-- Documents of a run by key, after a key{{if .ByOutcome}}, with one of the listed outcomes. A row of @rows: outcome{{end}}.
SELECT{{.Top}}
    i.document_id, i.outcome, i.code, b.number
FROM {{.Prefix}}batch_item AS i
INNER JOIN {{.Prefix}}batch AS b ON b.batch_id = i.batch_id
WHERE
    i.run_id = @run AND i.document_key > {{.OneHash "after_key"}}
{{- if .ByOutcome}}
    AND i.outcome IN (SELECT n.listed_outcome FROM {{.List "rows" "listed_outcome varchar(20)"}} AS n)
{{- end}}
ORDER BY i.document_key{{.Limit}};
