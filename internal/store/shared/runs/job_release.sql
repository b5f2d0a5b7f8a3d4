-- The worker lets go of its batch: updated_at is when.
{{template "begin.sql" . -}}
UPDATE {{.Batch}}
SET owner = NULL, heartbeat_at = NULL, updated_at = {{.Now}}
{{template "batch_leased.sql" . -}}
