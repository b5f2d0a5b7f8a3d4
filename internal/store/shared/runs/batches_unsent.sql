-- Gives batches whose message was not accepted, or has an unknown result, a new attempt. @counted is 1 if the queue
-- refused it. A row of @rows: id, attempt.
{{template "begin.sql" . -}}
{{.Update "batch" "b"}}
SET
    status = 'pending_retry', attempt = b.attempt + 1, queue_attempt_count = b.queue_attempt_count + @counted,
    last_queue_error = @reason, updated_at = {{.Now}}
FROM
    {{.List "rows" "listed_id varchar(64)" "listed_attempt int"}} AS n
{{.JoinTarget "batch" "b"}}WHERE
    b.batch_id = n.listed_id{{.BinaryCollation}} AND b.attempt = n.listed_attempt
    AND {{.NoIndex}}b.status IN ('pending_queue', 'pending_retry', 'queued'){{.ForceOrder}};
