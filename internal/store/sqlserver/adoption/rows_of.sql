-- Guarantees: the ledger's rows of the document with the key @key. No index has it, so the whole ledger is read: for what
-- a person asks, not for work.
SELECT
    l.detail_id, l.version_us, l.document_key, l.document_id, l.source_ts, l.content_hash, l.hash_version, l.sys_name,
    l.outcome
FROM sqlwriter.ledger AS l
WHERE l.document_key = CAST(@key AS binary(32));
