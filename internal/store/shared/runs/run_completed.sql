-- Counts the documents of the run's other batches: completed ones by their outcomes, and those that have not begun
-- (outcomes is NULL).
SELECT
    b.outcomes, COUNT(*) AS batches, SUM(b.total_count) AS documents
FROM {{.Prefix}}batch AS b
WHERE b.run_id = @run AND (b.outcomes IS NOT NULL OR b.process_start_time IS NULL)
GROUP BY b.outcomes;
