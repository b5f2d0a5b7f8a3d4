-- Renews the heartbeat of a run that the manager has.
{{template "begin.sql" . -}}
UPDATE {{.Prefix}}run
SET heartbeat_at = {{.Now}}
{{template "run_leased.sql" . -}}
