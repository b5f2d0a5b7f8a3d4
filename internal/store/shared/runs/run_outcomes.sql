-- Counts the documents of a run by outcome.
SELECT
    i.outcome, COUNT(*) AS documents
FROM {{.BatchItem}} AS i
WHERE i.run_id = @run
GROUP BY i.outcome;
