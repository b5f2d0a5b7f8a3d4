-- Guarantees: the first result has the number of lines and of stamped lines. Unless all are stamped, a second
-- one has a row for each line, by item, main line first.
SELECT @rows AS sqlwriter_lines, @stamped AS sqlwriter_stamped;
IF @stamped < @rows
    SELECT
        s.doc AS sqlwriter_doc, s.position, s.verdict, s.winner,
        CASE WHEN s.verdict = 'superseded' THEN s.holder END AS holder,
        s.holder_us, s.holder_key
    FROM #line AS s
    ORDER BY s.doc, s.position;
