-- Renews the heartbeat of a batch that the worker has.
{{template "begin.sql" . -}}
UPDATE {{.Prefix}}batch
SET heartbeat_at = {{.Now}}
{{template "batch_leased.sql" . -}}
