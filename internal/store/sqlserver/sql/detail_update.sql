-- Guarantees: the detail rows of all applied lines get every column of the table, or the request is undone.
IF @content > 0 OR @expected = 0
    BEGIN
        UPDATE d
        SET{{range $n, $c := .Detail}}{{if $n}},{{end}}
            {{$c.Name}} = s.{{$c.Staged}}{{end}}
        FROM #line AS s
        INNER JOIN {{.DetailTable}} AS d ON d.{{.DetailKey}} = s.detail_id
        WHERE s.winner = 1 AND s.verdict = 'applied' AND s.mark = 0
        OPTION (LOOP JOIN, FORCE ORDER);
        SET @written = @@ROWCOUNT;
        IF @written <> @content
            BEGIN
                SET @note = CONCAT(N'sqlwriter: IVCE_DTL: expected ', @content, N' rows written, found ', @written);
                THROW {{.RowCount}}, @note, 1;
            END;
    END;
