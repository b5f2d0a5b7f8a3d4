-- How many documents of a run have which outcome.
SELECT
    i.outcome, COUNT(*) AS documents
FROM {{.BatchItem}} AS i
WHERE i.run_id = @run
GROUP BY i.outcome;
