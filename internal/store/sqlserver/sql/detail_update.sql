-- Guarantees: the detail rows of all applied lines get every column of the mapping, or the request is undone.
-- A column that keeps its value gets one where the document has one.
-- A rewrite keeps a steward's status, and misses a row that was edited since it was read.
IF @content > 0 OR @expected = 0
    BEGIN
        UPDATE d
        SET{{range $n, $c := .Detail}}{{if $n}},{{end}}
            {{$c.Name}} = {{if and $.Rewrite $c.IsStatus}}CASE
                WHEN s.keep_status = 1 THEN d.{{$c.Name}}
                ELSE {{$c.Beside}}
            END{{else if $c.Keep}}COALESCE({{$c.Beside}}, d.{{$c.Name}}){{else}}s.{{$c.Staged}}{{end}}{{end}}
        FROM #line AS s
        INNER JOIN {{.DetailTable}} AS d ON d.{{.DetailKey}} = s.detail_id
        WHERE{{if .Rewrite}}
            {{else}} {{end}}s.winner = 1 AND s.verdict = 'applied' AND s.mark = 0{{if .Rewrite}}
            AND {{fingerprint "d" .Detail 12}} = s.detail_seen{{end}}
        OPTION (LOOP JOIN, FORCE ORDER);
        SET @written = @@ROWCOUNT;
        IF @written <> @content
            BEGIN
                SET @note = CONCAT(N'sqlwriter: IVCE_DTL: expected ', @content, N' rows written, found ', @written);
                THROW {{.Unwritten}}, @note, 1;
            END;
    END;
