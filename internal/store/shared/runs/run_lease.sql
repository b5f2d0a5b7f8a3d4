-- Locks the row of a run until the transaction ends, and changes nothing. It finds no row unless the run is
-- running{{if .Ended}} or completed, with failures or without{{end}}.
{{template "begin.sql" . -}}
UPDATE {{.Prefix}}run
SET epoch = epoch
WHERE run_id = @run AND status IN ('running'{{if .Ended}}, 'completed', 'completed_with_failures'{{end}});
