-- Asks a running run to end. The heartbeat stays, because only the manager renews it.
{{template "begin.sql" . -}}
UPDATE {{.Prefix}}run
SET cancel = 1
WHERE run_id = @run AND status = 'running';
