-- The batches of a list whose message the queue refused too often. A row of @rows: id, attempt.
SELECT
    b.batch_id, b.attempt
FROM
    {{.List "rows" "listed_id varchar(64)" "listed_attempt int"}} AS n
CROSS JOIN {{.Prefix}}batch AS b
WHERE
    b.batch_id = n.listed_id{{.BinaryCollation}} AND b.attempt = n.listed_attempt
    AND {{.NoIndex}}b.status IN ('pending_queue', 'pending_retry', 'queued') AND b.queue_attempt_count + 1 >= @most{{.ForceOrder}};
