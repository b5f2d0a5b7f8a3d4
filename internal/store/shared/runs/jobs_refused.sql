-- The batches of a list whose message the queue refused too often. A row of @rows: id, attempt.
SELECT
    j.job_id, j.attempt
FROM
    {{.List "rows" "listed_id char(64)" "listed_attempt int"}} AS n
CROSS JOIN {{.Batch}} AS j
WHERE
    j.job_id = n.listed_id{{.BinaryCollation}} AND j.attempt = n.listed_attempt
    AND {{.NoIndex}}j.status IN ('pending_queue', 'pending_retry', 'queued') AND j.queue_attempt_count + 1 >= @most{{.ForceOrder}};
