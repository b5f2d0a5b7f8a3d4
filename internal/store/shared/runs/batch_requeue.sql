-- Sends a failed batch again. A new epoch ends older leases, and a new attempt gives the next message a new id.
{{template "begin.sql" . -}}
UPDATE {{.Prefix}}batch
SET
{{template "next_attempt.sql" .}}
WHERE batch_id = @batch AND status = 'failed';
