-- Messages that the run's manager sent were accepted, which is progress: the managers that died before it count no
-- more. Most runs have lost none, and then nothing is written.
{{template "begin.sql" . -}}
UPDATE {{.Run}}
SET lost_managers = 0
WHERE run_id = @run AND owner = @owner AND epoch = @epoch AND status = 'running' AND lost_managers > 0;
