-- What a chunk adds to its run. Only the manager that has the run adds, and only what comes next. A chunk is
-- progress: the managers that died before it count no more.
{{template "begin.sql" . -}}
UPDATE {{.Run}}
SET
    batches = batches + @batches, documents = documents + @documents, watermark = NULLIF(@watermark, ''),
    next_at = {{.In "wait"}}, heartbeat_at = {{.Now}},
    lost_managers = 0
WHERE
    run_id = @run AND owner = @owner AND epoch = @epoch AND status = 'running'
    AND cancel = 0 AND handed_off_at IS NULL AND batches = @first - 1;
