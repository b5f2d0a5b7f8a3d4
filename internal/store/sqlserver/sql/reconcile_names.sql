-- Guarantees: the next ledger rows by the key, at most @limit of them whatever their environment, with their documents.
SELECT TOP (@limit)
    l.detail_id,
    l.document_id,
    l.sys_name
FROM {{.Ledger}} AS l
WHERE l.detail_id > @after
ORDER BY l.detail_id;
