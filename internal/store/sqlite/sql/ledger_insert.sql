-- Guarantees: a line without a ledger row gets one, stamped with this write. A row that appeared since
-- ledger_update.sql stays; the verdict then finds no evidence for this write.
INSERT INTO {{.Ledger}} (
    detail_id, version_us, document_key, document_id, source_ts, content_hash, hash_version, sys_name,
    detail_row_hash, tracking_row_hash, outcome, write_id, applied_at
)
SELECT
    s.detail_id, s.version_us, s.document_key, s.document_id, s.source_ts, iif(s.mark, NULL, s.content_hash),
    iif(s.mark, NULL, s.hash_version), s.sys_name, s.detail_row_hash, s.tracking_row_hash,
    iif(s.mark, 'failed', 'applied'), s.write_id, s.sent_at
FROM {{template "winners" .}} AS s
WHERE NOT EXISTS (SELECT 1 FROM {{.Ledger}} AS l WHERE l.detail_id = s.detail_id);
