-- Guarantees: an applied line without a tracking row gets one. Updated and inserted rows together must equal
-- the applied lines. Neither count includes a row that another session adds in between, so the request is
-- undone.
IF @written < @content OR @expected = 0
    BEGIN
        INSERT INTO {{.TrackingTable}} (
            {{.TrackingKey}}{{range .Tracking}},
            {{.Name}}{{end}}
        )
        SELECT
            s.detail_id{{range .Tracking}},
            s.{{.Staged}}{{end}}
        FROM #line AS s
        WHERE
            s.winner = 1 AND s.verdict = 'applied' AND s.mark = 0
            AND NOT EXISTS (SELECT 1 FROM {{.TrackingTable}} AS t WHERE t.{{.TrackingKey}} = s.detail_id)
        ORDER BY s.detail_id
        OPTION (LOOP JOIN, FORCE ORDER);
        SET @written = @written + @@ROWCOUNT;
    END;
IF @written <> @content
    BEGIN
        SET @note = CONCAT(N'sqlwriter: IVCE_TRKG_MSTR: expected ', @content, N' rows written, found ', @written);
        THROW {{.Unwritten}}, @note, 1;
    END;
