-- The running workers that have a batch of a run.
SELECT w.worker_id FROM {{.Worker}} AS w WHERE w.status = 'RUNNING' AND w.run_id = @run AND w.job_id IS NOT NULL;
