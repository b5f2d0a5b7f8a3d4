-- Renews the heartbeat of a run that the manager has.
{{template "begin.sql" . -}}
UPDATE {{.Run}}
SET heartbeat_at = {{.Now}}
{{template "run_leased.sql" . -}}
