-- Guarantees: the ledger's rows of the lines in ?1, a JSON array.
SELECT
    l.detail_id, l.version_us, l.document_key, l.document_id, l.source_ts, l.content_hash, l.hash_version, l.sys_name,
    l.outcome
FROM (SELECT DISTINCT e.value AS detail_id FROM json_each(?1) AS e) AS s CROSS JOIN sqlwriter_ledger AS l
WHERE l.detail_id = s.detail_id;
