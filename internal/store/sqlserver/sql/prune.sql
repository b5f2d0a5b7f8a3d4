-- Guarantees: a document with a missing line is left out; a failure mark leaves out that line only. Each line
-- has one winner among the remaining documents. The winner is the newest by (version, document key, source_ts),
-- then the later item. A line that a rewrite leaves alone is no winner, and keeps its verdict.
-- Skipped if every line exists and occurs once, because each line is then its own winner.
IF @missing > 0 OR @twice = 1
    BEGIN
        UPDATE s
        SET missing = 1
        FROM #line AS s
        WHERE NOT EXISTS (SELECT 1 FROM {{.DetailTable}} AS d WHERE d.{{.DetailKey}} = s.detail_id)
        OPTION (LOOP JOIN, FORCE ORDER);
        UPDATE s
        SET
            winner = CASE WHEN o.place = 1 AND o.left_out = 0 AND s.verdict = 'applied' THEN 1 ELSE 0 END,
            verdict = CASE WHEN o.missing = 1 THEN 'missing' WHEN o.left_out = 1 THEN '' ELSE s.verdict END
        FROM #line AS s
        INNER JOIN (
            SELECT
                c.detail_id, c.doc, c.missing, c.left_out,
                ROW_NUMBER() OVER (
                    PARTITION BY c.detail_id, c.left_out, c.verdict
                    ORDER BY c.version_us DESC, c.document_key DESC, c.source_ts DESC, c.doc DESC
                ) AS place
            FROM (
                SELECT
                    b.detail_id, b.doc, b.missing, b.verdict, b.version_us, b.document_key, b.source_ts,
                    CASE WHEN b.mark = 1 THEN b.missing ELSE MAX(b.missing) OVER (PARTITION BY b.doc) END AS left_out
                FROM #line AS b
            ) AS c
        ) AS o ON o.detail_id = s.detail_id AND o.doc = s.doc;
        SELECT @winners = COALESCE(SUM(s.winner), 0)
        FROM #line AS s;
    END;
