-- Guarantees: it is known how many lines have no detail row (we never make one). This is read before anything is
-- locked; what changes since is found by the counts.
-- (Every line is a winner yet; saying so tells optimizers that ignore the hint how few there are.)
SELECT @missing = COUNT(*)
FROM #line AS s
WHERE s.winner = 1 AND NOT EXISTS (SELECT 1 FROM {{.DetailTable}} AS d WHERE d.{{.DetailKey}} = s.detail_id)
OPTION (LOOP JOIN, FORCE ORDER);
