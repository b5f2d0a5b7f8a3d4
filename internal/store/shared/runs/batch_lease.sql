-- Locks a batch that the worker has until the transaction ends.
{{template "begin.sql" . -}}
UPDATE {{.Prefix}}batch
SET updated_at = {{.Now}}
{{template "batch_leased.sql" . -}}
