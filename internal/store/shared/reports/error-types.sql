-- Failures of documents in the last 7 days by type, the most frequent first (docs/requirements.md R85).
SELECT{{.Top}}
    e.error_type,
    COUNT(*) AS errors,
    {{.Percent "COUNT(*)" "SUM(COUNT(*)) OVER ()"}} AS errors_percent,
    COUNT(DISTINCT e.document_id) AS documents,
    SUM(CASE WHEN e.is_retryable = 1 THEN 1 ELSE 0 END) AS retryable,
    SUM(
        CASE WHEN e.created_at > {{.Ago 3600}} THEN 1 ELSE 0 END
    ) AS last_hour,
    MAX(e.created_at) AS latest
FROM {{.ErrorDetail}} AS e
WHERE
    e.created_at > {{.Ago 604800}}
    AND {{.OwnRuns "e.run_id"}}
GROUP BY e.error_type
ORDER BY errors DESC, e.error_type ASC{{.Limit}};
