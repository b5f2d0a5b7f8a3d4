-- Guarantees: a later snapshot of the same content raises source_ts and changes nothing else. A snapshot
-- between the two can then not restore older content. Skipped where verdict.sql is.
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
