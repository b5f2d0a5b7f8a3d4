-- Guarantees: first how many lines there are and how many this write stamped; then, unless it stamped all of
-- them, one row per line, items in their order, the main line first.
SELECT @rows AS sqlwriter_lines, @stamped AS sqlwriter_stamped;
IF @stamped < @rows
    SELECT
        s.doc AS sqlwriter_doc, s.position, s.verdict, s.winner,
        CASE WHEN s.verdict = 'superseded' THEN s.holder END AS holder,
        s.holder_us, s.holder_key
    FROM #line AS s
    ORDER BY s.doc, s.position;
