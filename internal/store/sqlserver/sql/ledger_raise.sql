-- Guarantees: a later snapshot of the same content raises source_ts and changes nothing else. A snapshot
-- between the two can then not restore older content. Skipped if this write stamped every winner.
IF @stamped < @winners
    BEGIN
        UPDATE l
        SET source_ts = s.source_ts
        FROM #line AS s
        INNER JOIN {{.Ledger}} AS l ON l.detail_id = s.detail_id
        WHERE
            s.winner = 1
            AND l.document_key = s.document_key
            AND l.outcome IN ('applied', 'adopted')
            AND l.content_hash = s.content_hash
            AND l.hash_version = s.hash_version
            AND l.source_ts < s.source_ts
        OPTION (LOOP JOIN, FORCE ORDER);
    END;
