-- Guarantees: a failure mark changes only the line status of its applied lines.
IF @marks > 0
    BEGIN
        UPDATE d
        SET {{.Status}} = N'{{.MarkText}}'
        FROM #line AS s
        INNER JOIN {{.DetailTable}} AS d ON d.{{.DetailKey}} = s.detail_id
        WHERE s.winner = 1 AND s.verdict = 'applied' AND s.mark = 1
        OPTION (LOOP JOIN, FORCE ORDER);
        SET @written = @@ROWCOUNT;
        IF @written <> @marks
            BEGIN
                SET @note = CONCAT(N'sqlwriter: IVCE_DTL: expected ', @marks, N' rows marked, found ', @written);
                THROW {{.RowCount}}, @note, 1;
            END;
    END;
