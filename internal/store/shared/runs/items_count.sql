-- How many documents of a batch have which outcome.
SELECT
    i.outcome, COUNT(*) AS documents
FROM {{.BatchItem}} AS i
WHERE i.job_id = @job
GROUP BY i.outcome;
