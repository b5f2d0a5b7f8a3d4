-- Gives queued batches with a lost message a new attempt, unless a worker claimed them meanwhile. A row of @rows:
-- id, attempt.
{{template "begin.sql" . -}}
{{.Update "batch" "b"}}
SET status = 'pending_retry', attempt = b.attempt + 1, updated_at = {{.Now}}
FROM
    {{.List "rows" "listed_id varchar(64)" "listed_attempt int"}} AS n
{{.JoinTarget "batch" "b"}}WHERE
    b.batch_id = n.listed_id{{.BinaryCollation}} AND b.attempt = n.listed_attempt
    AND {{.NoIndex}}b.status = 'queued'{{.ForceOrder}};
