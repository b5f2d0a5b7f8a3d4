-- Guarantees: every verdict depends on the ledger after the write. A line without evidence of this write, this
-- content or anything newer is a lost race; the whole request is undone and made again.
-- Skipped if this write stamped as many ledger rows as the request has lines. A line is stamped at most once,
-- so all are, and our locks keep others from changing them.
-- A pruned line of the same document lost to a later item of this request, which may have been left alone.
-- A percent sign is doubled, because THROW reads its message as a format.
IF @stamped < @rows
    BEGIN
        UPDATE s
        SET
            verdict = CASE
                WHEN
                    l.write_id = @write_id AND l.document_key = s.document_key AND l.source_ts = s.source_ts
                    AND (
                        (s.mark = 1 AND l.content_hash IS NULL)
                        OR (s.mark = 0 AND l.content_hash = s.content_hash AND l.hash_version = s.hash_version)
                    )
                    THEN 'applied'
                WHEN
                    l.document_key = s.document_key AND l.outcome IN ('applied', 'adopted')
                    AND l.content_hash = s.content_hash AND l.hash_version = s.hash_version
                    THEN 'unchanged'
                WHEN
                    l.version_us = s.version_us AND l.document_key = s.document_key
                    AND l.hash_version <> s.hash_version
                    AND (
                        s.mark = 1
                        OR l.source_ts >= s.leave_since
                        OR DATEDIFF_BIG(SECOND, '1970-01-01', l.applied_at) >= s.leave_since
                    )
                    THEN 'not_comparable'
                WHEN
                    l.version_us = s.version_us AND l.document_key = s.document_key
                    AND l.hash_version <> s.hash_version AND l.source_ts >= s.source_ts
                    THEN 'unchanged'
                WHEN
                    l.version_us > s.version_us
                    OR (l.version_us = s.version_us AND l.document_key > s.document_key)
                    OR (
                        l.version_us = s.version_us AND l.document_key = s.document_key
                        AND (l.source_ts > s.source_ts OR s.winner = 0)
                    )
                    THEN 'superseded'
                ELSE 'none'
            END,
            holder = l.document_id,
            holder_us = l.version_us,
            holder_key = l.document_key
        FROM #line AS s
        LEFT JOIN {{.Ledger}} AS l ON l.detail_id = s.detail_id
        WHERE s.verdict = 'applied'
        OPTION (LOOP JOIN, FORCE ORDER);
        SELECT @note = MIN(CONCAT(N'document ', LEFT(s.document_id, 900), N', line ', s.detail_id))
        FROM #line AS s
        WHERE s.verdict = 'none';
        IF @note IS NOT NULL
            BEGIN
                SET @note = REPLACE(CONCAT(N'sqlwriter: no evidence in the ledger: ', @note), N'%', N'%%');
                THROW {{.NoEvidence}}, @note, 1;
            END;
        SELECT @changed = COUNT(*), @marks = COALESCE(SUM(s.mark), 0)
        FROM #line AS s
        WHERE s.winner = 1 AND s.verdict = 'applied';
    END
ELSE
    SET @changed = @rows;
SET @content = @changed - @marks;
