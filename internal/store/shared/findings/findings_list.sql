-- Findings of a class{{if .ByState}} and a state{{end}}, by line and key. Of the line @from they have a key after @after.
SELECT{{.Top}}
    f.detail_id, f.document_id, f.state, f.first_seen, f.last_seen, f.run_id, f.row_hash, f.detail, f.mend, f.queued_by,
    f.accepted_hash, f.accepted_by, f.why
FROM {{.Finding}} AS f{{if .ByState}}{{.IndexByState}}{{end}}
WHERE
    f.sys_name = @sys_name AND f.class = @class{{if .ByState}} AND f.state = @state{{end}}
    AND f.detail_id >= @from AND f.detail_id <= @to AND (f.detail_id > @from OR f.document_key > @after)
    AND (@unqueued = 0 OR f.queued_by IS NULL) AND (@mend = '' OR f.mend = @mend)
ORDER BY f.detail_id, f.document_key{{.Limit}};
