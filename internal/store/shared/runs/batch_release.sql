-- Releases a batch that the worker has. updated_at is the time of the release.
{{template "begin.sql" . -}}
UPDATE {{.Prefix}}batch
SET owner = NULL, heartbeat_at = NULL, updated_at = {{.Now}}
{{template "batch_leased.sql" . -}}
