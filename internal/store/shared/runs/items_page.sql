-- Documents of a run by key, after a key{{if .ByOutcome}}, with one of the listed outcomes. A row of @rows: outcome{{end}}.
SELECT{{.Top}}
    i.document_id, i.outcome, i.code, j.number
FROM {{.BatchItem}} AS i
INNER JOIN {{.Batch}} AS j ON j.job_id = i.job_id
WHERE
    i.run_id = @run AND i.document_key > @after
{{- if .ByOutcome}}
    AND i.outcome IN (SELECT n.listed_outcome FROM {{.List "rows" "listed_outcome varchar(20)"}} AS n)
{{- end}}
ORDER BY i.document_key{{.Limit}};
