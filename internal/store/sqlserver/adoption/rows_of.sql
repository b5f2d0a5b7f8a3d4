-- Guarantees: the ledger's rows of the document @document. No index has the document, so the whole ledger is read: for what a person asks, not
-- for work. A collation may find more documents than the one, never fewer.
SELECT
    l.detail_id, l.version_us, l.document_key, l.document_id, l.source_ts, l.content_hash, l.hash_version, l.sys_name,
    l.outcome
FROM sqlwriter.ledger AS l
WHERE l.document_id = @document;
