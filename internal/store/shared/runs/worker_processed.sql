-- Adds to the count of documents that a worker has processed.
{{template "begin.sql" . -}}
UPDATE {{.Prefix}}worker
SET documents_processed = documents_processed + @documents
WHERE worker_id = @owner;
