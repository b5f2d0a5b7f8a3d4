-- Gives queued batches with a lost message a new attempt, unless a worker claimed them meanwhile. A row of @rows:
-- id, attempt.
{{template "begin.sql" . -}}
{{.Update .Batch "j"}}
SET status = 'pending_retry', attempt = j.attempt + 1, updated_at = {{.Now}}
FROM
    {{.List "rows" "listed_id char(64)" "listed_attempt int"}} AS n
{{.JoinTarget .Batch "j"}}WHERE
    j.job_id = n.listed_id{{.BinaryCollation}} AND j.attempt = n.listed_attempt
    AND {{.NoIndex}}j.status = 'queued'{{.ForceOrder}};
