-- The manager lives, as long as the run is its own.
{{template "begin.sql" . -}}
UPDATE {{.Run}}
SET heartbeat_at = {{.Now}}
{{template "run_leased.sql" . -}}
