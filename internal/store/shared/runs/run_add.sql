-- Adds a chunk to its run. Only the run's manager may add, and only the next chunk. A chunk is progress, so it
-- resets the count of lost managers.
{{template "begin.sql" . -}}
UPDATE {{.Prefix}}run
SET
    batches = batches + @batches, documents = documents + @documents, watermark = NULLIF(@watermark, ''),
    next_at = {{.In "wait"}}, heartbeat_at = {{.Now}},
    lost_managers = 0
WHERE
    run_id = @run AND owner = @owner AND epoch = @epoch AND status = 'running'
    AND cancel = 0 AND handed_off_at IS NULL AND batches = @first - 1;
