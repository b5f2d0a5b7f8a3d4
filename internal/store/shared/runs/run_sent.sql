-- Resets the count of lost managers after the queue accepted messages of the run, because that is progress. For
-- most runs the count is 0, and nothing is written.
{{template "begin.sql" . -}}
UPDATE {{.Prefix}}run
SET lost_managers = 0
WHERE run_id = @run AND owner = @owner AND epoch = @epoch AND status = 'running' AND lost_managers > 0;
