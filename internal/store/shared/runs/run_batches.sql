-- Counts the batches of a run by status. Naming all statuses lets the query use the index that begins with the status.
SELECT
    b.status, COUNT(*) AS batches
FROM {{.Prefix}}batch AS b
WHERE b.run_id = @run AND b.status IN ({{.Statuses}})
GROUP BY b.status;
