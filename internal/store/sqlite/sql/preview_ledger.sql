-- Guarantees: the ledger rows of the request, in a temp table. A preview runs the statements of a write on this
-- copy. The same guards so decide its outcomes, and nothing is written.
INSERT INTO {{.Copy}}
SELECT
    l.detail_id, l.version_us, l.document_key, l.document_id, l.source_ts, l.content_hash, l.hash_version, l.sys_name,
    l.detail_row_hash, l.tracking_row_hash, l.outcome, l.write_id, l.applied_at
FROM (SELECT DISTINCT r.detail_id FROM {{.Row}} AS r) AS d CROSS JOIN main.sqlwriter_ledger AS l
WHERE l.detail_id = d.detail_id;
