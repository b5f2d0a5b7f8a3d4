-- Guarantees: existing tracking rows get every column of the mapping; one that keeps its
-- value, where the document has one. Failure marks do not change this table.
-- A rewrite keeps a steward's status, and misses a row that was edited since it was read.
SET @written = 0;
IF @content > 0 OR @expected = 0
    BEGIN
        UPDATE t
        SET{{range $n, $c := .Tracking}}{{if $n}},{{end}}
            {{$c.Name}} = {{if and $.Rewrite $c.IsStatus}}CASE
                WHEN s.keep_status = 1 THEN t.{{$c.Name}}
                ELSE {{$c.Beside}}
            END{{else if $c.Keep}}COALESCE({{$c.Beside}}, t.{{$c.Name}}){{else}}s.{{$c.Staged}}{{end}}{{end}}
        FROM #line AS s
        INNER JOIN {{.TrackingTable}} AS t ON t.{{.TrackingKey}} = s.detail_id
        WHERE{{if .Rewrite}}
            {{else}} {{end}}s.winner = 1 AND s.verdict = 'applied' AND s.mark = 0{{if .Rewrite}}
            AND {{fingerprint "t" .Tracking 12}} = s.tracking_seen{{end}}
        OPTION (LOOP JOIN, FORCE ORDER);
        SET @written = @@ROWCOUNT;
    END;
