-- Batches whose message was accepted. One that a worker has already, or that another attempt was made for, stays as it is.
-- A row of @rows is an array: id, attempt.
{{template "begin.sql" . -}}
{{.Update .Batch "j"}}
SET status = 'queued', queued_at = {{.Now}}, updated_at = {{.Now}}
FROM
    {{.List "rows" "listed_id char(64)" "listed_attempt int"}} AS n
{{.JoinTarget .Batch "j"}}WHERE
    j.job_id = n.listed_id{{.BinaryCollation}} AND j.attempt = n.listed_attempt
    AND {{.NoIndex}}j.status IN ('pending_queue', 'pending_retry'){{.ForceOrder}};
