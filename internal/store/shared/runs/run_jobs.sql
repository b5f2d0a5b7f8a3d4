-- How many batches of a run have which status. The statuses are named, so that each is a range of the index of statuses.
SELECT
    j.status, COUNT(*) AS jobs
FROM {{.Batch}} AS j
WHERE j.run_id = @run AND j.status IN ({{.Statuses}})
GROUP BY j.status;
