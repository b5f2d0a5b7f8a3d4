-- Stores the progress of a run without documents. Only the run's manager may. A step is progress, so it resets the
-- count of lost managers.
{{template "begin.sql" . -}}
UPDATE {{.Run}}
SET
    watermark = NULLIF(@watermark, ''), counts = @counts, documents = @documents,
    next_at = {{.In "wait"}}, heartbeat_at = {{.Now}},
    lost_managers = 0
WHERE
    run_id = @run AND owner = @owner AND epoch = @epoch AND status = 'running'
    AND cancel = 0 AND handed_off_at IS NULL;
