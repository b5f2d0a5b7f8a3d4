-- Adds the worker of a claimed run or batch.
{{template "begin.sql" . -}}
UPDATE {{.Worker}}
SET
    kind = @kind, instance = @instance, status = 'RUNNING', run_id = @run, job_id = NULLIF(@job, ''), completed_at = NULL,
    heartbeat_at = {{.Now}}
WHERE worker_id = @owner;
INSERT INTO {{.Worker}} (worker_id, kind, instance, status, run_id, job_id, started_at, heartbeat_at)
SELECT @owner, @kind, @instance, 'RUNNING', @run, NULLIF(@job, ''), {{.Now}}, {{.Now}}
WHERE NOT EXISTS (SELECT 1 FROM {{.Worker}} AS w WHERE w.worker_id = @owner);
