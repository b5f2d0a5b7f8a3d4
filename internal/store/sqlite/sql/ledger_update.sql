-- Guarantees (newest wins): only a newer document, or the same one, replaces a ledger row. The same document
-- needs a snapshot that is not older, and another content than the ledger has as written.
-- @mode is the mode. A rewrite also takes the same content, and an older one where a release names the ledger's row.
-- A failure mark skips lines that have, or may have, the content that failed.
-- The guard is part of the writing statement and compares only the target's columns with the staged line.
UPDATE {{.Ledger}} AS l
SET
    version_us = s.version_us,
    document_key = s.document_key,
    document_id = s.document_id,
    source_ts = s.source_ts,
    content_hash = iif(s.mark, NULL, s.content_hash),
    hash_version = iif(s.mark, NULL, s.hash_version),
    sys_name = s.sys_name,
    detail_row_hash = s.detail_row_hash,
    tracking_row_hash = s.tracking_row_hash,
    outcome = iif(s.mark, 'failed', 'applied'),
    write_id = s.write_id,
    applied_at = s.sent_at
FROM {{template "winners" .}} AS s
WHERE
    l.detail_id = +s.detail_id
    AND (
        {{template "newer" .}}
        OR (
            {{template "same" .}}
            AND ((s.mark = 0 AND @mode = 'rewrite') OR {{template "other" .}})
        )
        OR (@mode = 'rewrite' AND {{template "released" .}})
    );
