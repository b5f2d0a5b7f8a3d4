-- Documents of a run by key, from one on.
SELECT{{.Top}}
    i.document_id, i.outcome, i.code, j.number
FROM {{.BatchItem}} AS i
INNER JOIN {{.Job}} AS j ON j.job_id = i.job_id
WHERE i.run_id = @run AND i.document_key > @after
ORDER BY i.document_key{{.Limit}};
