-- Adds documents of batches. A document that the run already has is an error. A row of @rows: key, id, batch, position.
{{template "begin.sql" . -}}
INSERT INTO {{.Prefix}}batch_item (run_id, document_key, document_id, batch_id, position)
SELECT
    @run, {{.Hash "n.listed_key"}}, n.listed_document,
    n.listed_batch, n.listed_position
FROM
    {{.List "rows" "listed_key int" "listed_document nvarchar(1023)" "listed_batch varchar(64)" "listed_position int"}} AS n
ORDER BY n.listed_key;
