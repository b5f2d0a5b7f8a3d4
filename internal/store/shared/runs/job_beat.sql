-- The worker lives, as long as the batch is its own.
{{template "begin.sql" . -}}
UPDATE {{.Batch}}
SET heartbeat_at = {{.Now}}
{{template "batch_leased.sql" . -}}
