-- Counts the documents of the run's batches that have begun and not completed, by outcome. run_completed.sql counts the
-- others, because a run may have a million documents.
SELECT
    i.outcome, COUNT(*) AS documents
FROM {{.Batch}} AS j
INNER JOIN {{.BatchItem}} AS i ON i.job_id = j.job_id
WHERE j.run_id = @run AND j.outcomes IS NULL AND j.process_start_time IS NOT NULL
GROUP BY i.outcome;
