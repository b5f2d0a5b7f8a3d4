-- Marks batches whose message the queue accepted. A batch that a worker already has, or that has another attempt,
-- stays as it is. A row of @rows: id, attempt.
{{template "begin.sql" . -}}
{{.Update "batch" "b"}}
SET status = 'queued', queued_at = {{.Now}}, updated_at = {{.Now}}
FROM
    {{.List "rows" "listed_id varchar(64)" "listed_attempt int"}} AS n
{{.JoinTarget "batch" "b"}}WHERE
    b.batch_id = n.listed_id{{.BinaryCollation}} AND b.attempt = n.listed_attempt
    AND {{.NoIndex}}b.status IN ('pending_queue', 'pending_retry'){{.ForceOrder}};
