-- The running workers of a run: its manager, and those that have a batch of it.
SELECT w.worker_id, w.kind FROM {{.Worker}} AS w WHERE w.status = 'RUNNING' AND w.run_id = @run;
