-- Guarantees: content that is there already, seen again in a later snapshot, raises source_ts and nothing else, so that
-- a snapshot between the two can no longer bring older content back. Skipped as verdict.sql is.
UPDATE {{.Ledger}} AS l
SET source_ts = s.source_ts
FROM {{template "winners" .}} AS s
WHERE
    l.detail_id = +s.detail_id
    AND l.document_key = s.document_key
    AND l.outcome IN ('applied', 'adopted')
    AND l.content_hash = s.content_hash
    AND l.hash_version = s.hash_version
    AND l.source_ts < s.source_ts;
