-- Renews the heartbeat of a batch that the worker has.
{{template "begin.sql" . -}}
UPDATE {{.Batch}}
SET heartbeat_at = {{.Now}}
{{template "batch_leased.sql" . -}}
