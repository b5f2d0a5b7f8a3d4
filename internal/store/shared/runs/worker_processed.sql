-- A worker has done some documents more.
{{template "begin.sql" . -}}
UPDATE {{.Worker}}
SET documents_processed = documents_processed + @documents
WHERE worker_id = @owner;
