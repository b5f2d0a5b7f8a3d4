-- Deletes batches of a run.
DELETE FROM sqlwriter_job
WHERE job_number IN (SELECT j.job_number FROM sqlwriter_job AS j WHERE j.run_id = @run LIMIT @limit);
