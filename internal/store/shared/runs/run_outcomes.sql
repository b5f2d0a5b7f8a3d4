-- Counts the documents of the run's batches that have begun and not completed, by outcome. run_completed.sql counts the
-- others, because a run may have a million documents.
SELECT
    i.outcome, COUNT(*) AS documents
FROM {{.Prefix}}batch AS b
INNER JOIN {{.Prefix}}batch_item AS i ON i.batch_id = b.batch_id
WHERE b.run_id = @run AND b.outcomes IS NULL AND b.process_start_time IS NOT NULL
GROUP BY i.outcome;
