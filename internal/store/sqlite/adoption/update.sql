-- Guarantees (newest wins): only a newer document, or another result of the same one, replaces a ledger row.
-- Another result is a failure after content, content after a mark, or other content under the same hash
-- version. A ledger row of hash version 0 proves nothing and is replaced too. The result must not have been
-- read earlier.
-- Rows that this product applied change only for a newer document. ?1 is the run.
UPDATE sqlwriter_ledger AS l
SET
    version_us = s.version_us,
    document_key = s.document_key,
    document_id = s.document_id,
    source_ts = s.source_ts,
    content_hash = s.content_hash,
    hash_version = s.hash_version,
    sys_name = s.sys_name,
    detail_row_hash = NULL,
    tracking_row_hash = NULL,
    outcome = s.outcome,
    write_id = ?1,
    applied_at = strftime('%Y-%m-%dT%H:%M:%fZ', 'now')
FROM sqlwriter_adopt AS s
WHERE
    l.detail_id = +s.detail_id
    AND (
        (l.version_us, l.document_key) < (s.version_us, s.document_key)
        OR (
            l.version_us = s.version_us AND l.document_key = s.document_key AND l.source_ts <= s.source_ts
            AND CASE
                WHEN s.outcome = 'failed' OR l.outcome = 'failed' THEN s.outcome <> l.outcome
                WHEN l.hash_version = s.hash_version THEN l.content_hash <> s.content_hash
                ELSE l.hash_version = 0
            END
        )
    );
