{{- /* Produced only where the user's text columns cannot hold every character: varchar, and char, of one code page. */ -}}
{{if .Lossy -}}
-- Guarantees: no character is lost without a word. A varchar column makes a question mark of what its code page lacks:
-- a row that has more of them than its document is refused. (What else a trigger of the user's changes is its business.)
{{end -}}
{{range .Lossy -}}
IF @content > 0
    BEGIN
        SELECT TOP (1)
            @note = CONCAT(
                N'sqlwriter: document ', s.document_id, N', line ', s.detail_id,
                N': characters that the column cannot hold: ', x.label
            )
        FROM #line AS s
        INNER JOIN {{.Table}} AS u ON u.{{.Key}} = s.detail_id
        CROSS APPLY (
            VALUES{{range $n, $c := .Columns}}{{if $n}},{{end}}
            (
                N'{{$c.Label}}', CAST(u.{{$c.Name}} AS nvarchar(max)) COLLATE Latin1_General_BIN2,
                s.{{$c.Staged}} COLLATE Latin1_General_BIN2
            ){{end}}
        ) AS x(label, kept, given)
        WHERE
            s.winner = 1 AND s.verdict = 'applied' AND s.mark = 0
            AND LEN(REPLACE(x.kept, N'?', N'??')) - LEN(x.kept) > LEN(REPLACE(x.given, N'?', N'??')) - LEN(x.given)
        OPTION (LOOP JOIN, FORCE ORDER);
        IF @note IS NOT NULL
            THROW {{$.LostCharacters}}, @note, 1;
    END;
{{end -}}
