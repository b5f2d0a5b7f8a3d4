-- How many batches of a run have which status.
SELECT
    j.status, COUNT(*) AS jobs
FROM {{.Job}} AS j
WHERE j.run_id = @run
GROUP BY j.status;
