-- Guarantees: existing tracking rows get every column of the table. Failure marks do not change this table.
SET @written = 0;
IF @content > 0 OR @expected = 0
    BEGIN
        UPDATE t
        SET{{range $n, $c := .Tracking}}{{if $n}},{{end}}
            {{$c.Name}} = s.{{$c.Staged}}{{end}}
        FROM #line AS s
        INNER JOIN {{.TrackingTable}} AS t ON t.{{.TrackingKey}} = s.detail_id
        WHERE s.winner = 1 AND s.verdict = 'applied' AND s.mark = 0
        OPTION (LOOP JOIN, FORCE ORDER);
        SET @written = @@ROWCOUNT;
    END;
