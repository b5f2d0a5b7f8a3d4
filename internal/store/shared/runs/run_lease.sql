-- Keeps the row of a run from others until the transaction ends, and changes nothing: what is read after it stays so.
-- 0 rows when it has none of these statuses: running{{if .Ended}}, completed, with failures or without{{end}}.
{{template "begin.sql" . -}}
UPDATE {{.Run}}
SET epoch = epoch
WHERE
    run_id = @run AND pattern IS NOT NULL
    AND status IN ('running'{{if .Ended}}, 'completed', 'completed_with_failures'{{end}});
