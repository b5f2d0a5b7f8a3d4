-- Guarantees: every verdict depends on the ledger after the write. A line without evidence of this write, this
-- content or anything newer gets 'none'; the whole request is rolled back and made again.
-- Skipped if the ledger has this write for every line (stamped.sql).
-- A pruned row of the same document lost to a later item of this request, which may have been left alone.
UPDATE {{.Row}} AS r
SET verdict = CASE
    WHEN s.missing THEN 'missing'
    WHEN s.left_out THEN ''
    WHEN r.verdict <> 'applied' THEN r.verdict
    WHEN
        s.ledger_write_id = s.write_id AND s.ledger_key = s.document_key AND s.ledger_ts = s.source_ts
        AND s.ledger_hash IS iif(s.mark, NULL, s.content_hash)
        AND s.ledger_hash_version IS iif(s.mark, NULL, s.hash_version)
        THEN 'applied'
    WHEN
        s.ledger_key = s.document_key AND s.ledger_outcome IN ('applied', 'adopted')
        AND s.ledger_hash = s.content_hash AND s.ledger_hash_version = s.hash_version
        THEN 'unchanged'
    WHEN
        s.ledger_us = s.version_us AND s.ledger_key = s.document_key
        AND s.ledger_hash_version <> s.hash_version
        AND (s.mark = 1 OR max(s.ledger_ts, s.ledger_at) >= s.leave_since)
        THEN 'not_comparable'
    WHEN
        s.ledger_us = s.version_us AND s.ledger_key = s.document_key
        AND s.ledger_hash_version <> s.hash_version AND s.ledger_ts >= s.source_ts
        THEN 'unchanged'
    WHEN
        (s.ledger_us, s.ledger_key) > (s.version_us, s.document_key)
        OR (
            s.ledger_us = s.version_us AND s.ledger_key = s.document_key
            AND (s.ledger_ts > s.source_ts OR s.winner = 0)
        )
        THEN 'superseded'
    ELSE 'none'
END
FROM (
    SELECT
        c.detail_id, c.missing, c.winner, i.*, w.write_id,
        l.version_us AS ledger_us, l.document_key AS ledger_key, l.source_ts AS ledger_ts,
        l.content_hash AS ledger_hash, l.hash_version AS ledger_hash_version, l.outcome AS ledger_outcome,
        l.write_id AS ledger_write_id, CAST(strftime('%s', l.applied_at) AS INTEGER) AS ledger_at
    FROM {{.Row}} AS c CROSS JOIN {{.Item}} AS i CROSS JOIN {{.Send}} AS w
    LEFT JOIN {{.Ledger}} AS l ON l.detail_id = c.detail_id
    WHERE i.doc = c.doc
) AS s
WHERE r.detail_id = s.detail_id AND r.doc = s.doc;
