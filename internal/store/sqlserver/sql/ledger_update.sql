-- Guarantees (newest wins): only a newer document, or the same one, replaces a ledger row. The same document
-- needs a snapshot that is not older, and another content than the ledger has as written.
-- A rewrite also takes the same content, and an older one where a release names the ledger's row. A failure mark
-- skips lines that have, or may have, the content that failed.
-- The guard is part of the writing statement and compares only the target's columns with the staged line, so it
-- needs no lock hint.
UPDATE l
SET
    version_us = s.version_us,
    document_key = s.document_key,
    document_id = s.document_id,
    source_ts = s.source_ts,
    content_hash = CASE WHEN s.mark = 1 THEN NULL ELSE s.content_hash END,
    hash_version = CASE WHEN s.mark = 1 THEN NULL ELSE s.hash_version END,
    sys_name = @sys_name,
    detail_row_hash = s.detail_row_hash,
    tracking_row_hash = s.tracking_row_hash,
    outcome = CASE WHEN s.mark = 1 THEN 'failed' ELSE 'applied' END,
    write_id = @write_id,
    applied_at = SYSUTCDATETIME()
FROM #line AS s
INNER JOIN {{.Ledger}} AS l ON l.detail_id = s.detail_id
WHERE
    s.winner = 1
    AND (
        {{template "newer" .}}
        OR (
            {{template "same" .}}
            AND (
                {{if .Rewrite}}s.mark = 0
                OR {{end}}{{template "other" .}}
            )
        ){{if .Rewrite}}
        OR {{template "released" .}}{{end}}
    )
OPTION (LOOP JOIN, FORCE ORDER);
SET @stamped = @@ROWCOUNT;
