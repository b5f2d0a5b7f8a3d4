-- Guarantees: content that is there already, seen again in a later snapshot, raises source_ts and nothing else,
-- so that a snapshot between the two can no longer bring older content back. Skipped where this write stamped
-- every winner.
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
