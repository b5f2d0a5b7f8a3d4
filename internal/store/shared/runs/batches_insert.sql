-- Adds the batches of a chunk. A row of @rows: id, number, documents.
{{template "begin.sql" . -}}
INSERT INTO {{.Prefix}}batch (batch_id, run_id, number, status, attempt, created_at, updated_at, total_count)
SELECT
    n.listed_id, @run, n.listed_number, 'pending_queue', @attempt, {{.Now}}, {{.Now}}, n.listed_total
FROM
    {{.List "rows" "listed_id varchar(64)" "listed_number int" "listed_total int"}} AS n
ORDER BY n.listed_number;
