-- Guarantees: the number of lines without a detail row is known; we never add one. The read takes no lasting
-- lock, and the row counts detect later changes.
-- Every line is still a winner here. The condition gives optimizers that ignore the hint a small estimate.
SELECT @missing = COUNT(*)
FROM #line AS s
WHERE s.winner = 1 AND NOT EXISTS (SELECT 1 FROM {{.DetailTable}} AS d WHERE d.{{.DetailKey}} = s.detail_id)
OPTION (LOOP JOIN, FORCE ORDER);
