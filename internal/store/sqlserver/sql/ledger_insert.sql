-- Guarantees: a line without a ledger row gets one, stamped with this write. A row that appeared since
-- ledger_update.sql stays; the verdict then finds no evidence for this write.
IF @stamped < @winners OR @expected = 0
    BEGIN
        INSERT INTO {{.Ledger}} (
            detail_id, version_us, document_key, document_id, source_ts, content_hash, hash_version, sys_name,
            detail_row_hash, tracking_row_hash, outcome, write_id, applied_at
        )
        SELECT
            s.detail_id, s.version_us, s.document_key, s.document_id, s.source_ts,
            CASE WHEN s.mark = 1 THEN NULL ELSE s.content_hash END,
            CASE WHEN s.mark = 1 THEN NULL ELSE s.hash_version END,
            @sys_name, s.detail_row_hash, s.tracking_row_hash,
            CASE WHEN s.mark = 1 THEN 'failed' ELSE 'applied' END, @write_id, SYSUTCDATETIME()
        FROM #line AS s
        WHERE s.winner = 1 AND NOT EXISTS (SELECT 1 FROM {{.Ledger}} AS l WHERE l.detail_id = s.detail_id)
        ORDER BY s.detail_id
        OPTION (LOOP JOIN, FORCE ORDER);
        SET @stamped = @stamped + @@ROWCOUNT;
    END;
