-- RUNNING managers and workers without a heartbeat for ten minutes, the longest silent first.
SELECT{{.Top}}
    w.worker_id,
    w.kind,
    w.instance,
    w.run_id,
    w.batch_id,
    w.documents_processed,
    w.started_at,
    w.heartbeat_at AS last_heartbeat,
    {{.Seconds "w.heartbeat_at" .Now}} AS silent_seconds
FROM {{.Worker}} AS w
WHERE
    w.status = 'RUNNING' AND w.heartbeat_at < {{.Ago .DeadSeconds}}
    AND {{.OwnRuns "w.run_id"}}
ORDER BY w.heartbeat_at ASC, w.worker_id ASC{{.Limit}};
