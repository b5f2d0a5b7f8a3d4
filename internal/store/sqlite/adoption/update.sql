-- Guarantees (newest wins): a ledger row is adopted only for a newer document, or for the same one when it was not read
-- earlier and says something else: failed where the ledger knows content, content where it knows a mark, other content
-- where the hashes can be compared or the ledger's proves nothing (hash version 0). What we applied is left alone by all
-- of them unless the document is newer. ?1 is the run.
UPDATE sqlwriter_ledger AS l
SET
    version_us = s.version_us,
    document_key = s.document_key,
    document_id = s.document_id,
    source_ts = s.source_ts,
    content_hash = s.content_hash,
    hash_version = s.hash_version,
    row_hash = s.row_hash,
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
