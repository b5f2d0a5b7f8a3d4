-- Guarantees: staged rows are in the ledger, unless their lines had one. They belong to no run.
INSERT INTO sqlwriter_ledger (
    detail_id, version_us, document_key, document_id, source_ts, content_hash, hash_version, sys_name, outcome,
    write_id, applied_at
)
SELECT
    s.detail_id, s.version_us, s.document_key, s.document_id, s.source_ts, s.content_hash, s.hash_version, s.sys_name,
    s.outcome, '', strftime('%Y-%m-%dT%H:%M:%fZ', 'now')
FROM sqlwriter_adopt AS s
WHERE NOT EXISTS (SELECT 1 FROM sqlwriter_ledger AS l WHERE l.detail_id = s.detail_id);
