-- Gives batches whose message was not accepted, or has an unknown result, a new attempt. @counted is 1 if the queue
-- refused it. A row of @rows: id, attempt.
{{template "begin.sql" . -}}
{{.Update .Batch "j"}}
SET
    status = 'pending_retry', attempt = j.attempt + 1, queue_attempt_count = j.queue_attempt_count + @counted,
    last_queue_error = @reason, updated_at = {{.Now}}
FROM
    {{.List "rows" "listed_id char(64)" "listed_attempt int"}} AS n
{{.JoinTarget .Batch "j"}}WHERE
    j.job_id = n.listed_id{{.BinaryCollation}} AND j.attempt = n.listed_attempt
    AND {{.NoIndex}}j.status IN ('pending_queue', 'pending_retry', 'queued'){{.ForceOrder}};
