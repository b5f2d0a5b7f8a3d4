-- Keeps a batch that is its worker's from others until the transaction ends.
{{template "begin.sql" . -}}
UPDATE {{.Batch}}
SET updated_at = {{.Now}}
{{template "batch_leased.sql" . -}}
