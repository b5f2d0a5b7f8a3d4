-- Batches whose message was refused once too often are failed. A row of @rows is an array: id, attempt.
{{template "begin.sql" . -}}
{{.Update .Job "j"}}
SET
    status = 'failed', attempt = j.attempt + 1, queue_attempt_count = j.queue_attempt_count + 1, last_queue_error = @reason,
    error = @given_up, process_end_time = {{.Now}}, updated_at = {{.Now}}
FROM
    {{.List "rows" "listed_id char(64)" "listed_attempt int"}} AS n
{{.Beside .Job "j"}}WHERE
    j.job_id = n.listed_id{{.Bytes}} AND j.attempt = n.listed_attempt
    AND {{.Late}}j.status IN ('pending_queue', 'pending_retry', 'queued') AND j.queue_attempt_count + 1 >= @most{{.InOrder}};
