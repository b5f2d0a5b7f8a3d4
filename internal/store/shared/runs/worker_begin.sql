-- Adds the worker of a claimed run or batch.
{{template "begin.sql" . -}}
UPDATE {{.Prefix}}worker
SET
    kind = @kind, instance = @instance, status = 'RUNNING', run_id = @run, batch_id = NULLIF(@batch, ''),
    completed_at = NULL, heartbeat_at = {{.Now}}
WHERE worker_id = @owner;
INSERT INTO {{.Prefix}}worker (worker_id, kind, instance, status, run_id, batch_id, started_at, heartbeat_at)
SELECT @owner, @kind, @instance, 'RUNNING', @run, NULLIF(@batch, ''), {{.Now}}, {{.Now}}
WHERE NOT EXISTS (SELECT 1 FROM {{.Prefix}}worker AS w WHERE w.worker_id = @owner);
