-- Counts the documents of the run's other batches: completed ones by their outcomes, and those that have not begun
-- (outcomes is NULL).
SELECT
    j.outcomes, COUNT(*) AS batches, SUM(j.total_count) AS documents
FROM {{.Batch}} AS j
WHERE j.run_id = @run AND (j.outcomes IS NOT NULL OR j.process_start_time IS NULL)
GROUP BY j.outcomes;
