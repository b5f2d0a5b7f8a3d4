-- A worker that brought no outcome leaves no row.
{{template "begin.sql" . -}}
DELETE FROM {{.Worker}}
WHERE worker_id = @owner AND status = 'RUNNING' AND documents_processed = 0;
