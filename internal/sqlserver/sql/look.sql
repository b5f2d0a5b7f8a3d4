-- Guarantees: it is known what is there for the lines already: detail rows (we never make one), ledger rows, tracking rows.
-- This is read before anything is locked and only chooses statements; what changed since is found by the guards and counts.
-- (Every line is a winner yet; saying so tells optimizers that ignore the hint how few there are.)
SELECT
    @rows = COUNT(*),
    @lines = COUNT(DISTINCT s.detail_id),
    @marks = SUM(s.mark),
    @missing = SUM(CASE WHEN d.{{.DetailKey}} IS NULL THEN 1 ELSE 0 END),
    @known = SUM(CASE WHEN l.detail_id IS NULL THEN 0 ELSE 1 END),
    @tracked = SUM(CASE WHEN s.mark = 1 OR t.{{.TrackingKey}} IS NULL THEN 0 ELSE 1 END)
FROM #line AS s
LEFT JOIN {{.DetailTable}} AS d ON d.{{.DetailKey}} = s.detail_id
LEFT JOIN {{.Ledger}} AS l ON l.detail_id = s.detail_id
LEFT JOIN {{.TrackingTable}} AS t ON t.{{.TrackingKey}} = s.detail_id
WHERE s.winner = 1
OPTION (LOOP JOIN, FORCE ORDER);
SET @winners = @rows;
IF @rows <> @expected
    BEGIN
        SET @note = CONCAT(N'sqlwriter: expected ', @expected, N' lines, found ', @rows, N': a key stands twice');
        THROW {{.RowCount}}, @note, 1;
    END;
