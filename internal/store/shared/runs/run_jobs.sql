-- Counts the batches of a run by status. Naming all statuses lets the query use the index that begins with the status.
SELECT
    j.status, COUNT(*) AS jobs
FROM {{.Batch}} AS j
WHERE j.run_id = @run AND j.status IN ({{.Statuses}})
GROUP BY j.status;
