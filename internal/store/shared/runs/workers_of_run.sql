-- The running workers of a run: its manager, and the workers of its batches.
SELECT w.worker_id, w.kind FROM {{.Prefix}}worker AS w WHERE w.status = 'RUNNING' AND w.run_id = @run;
