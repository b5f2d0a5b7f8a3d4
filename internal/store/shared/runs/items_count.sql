-- Counts the documents of a batch by outcome.
SELECT
    i.outcome, COUNT(*) AS documents
FROM {{.BatchItem}} AS i
WHERE i.job_id = @job
GROUP BY i.outcome;
