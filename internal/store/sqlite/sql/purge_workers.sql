-- Deletes workers of a run. The statuses are all there are: the index begins with them.
DELETE FROM sqlwriter_worker
WHERE worker_id IN (
    SELECT w.worker_id
    FROM sqlwriter_worker AS w
    WHERE w.status IN ('IDLE', 'RUNNING', 'COMPLETED', 'FAILED') AND w.run_id = @run
    LIMIT @limit
);
