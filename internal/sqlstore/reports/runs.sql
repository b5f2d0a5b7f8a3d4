-- The latest runs, the newest first, and how far they are. Documents are those that have a batch, done are those of
-- completed batches, and the percentage is of those that are known: until all are handed off, what the preview found, if
-- that is more.
WITH known AS (
    SELECT
        r.run_id,
        CASE
            WHEN r.handed_off_at IS NULL AND r.matched_count > r.documents THEN r.matched_count
            ELSE r.documents
        END AS documents
    FROM {{.Run}} AS r
),

progress AS (
    SELECT
        b.run_id,
        SUM(CASE WHEN b.batch_status = 'completed' THEN CAST(b.total_count AS bigint) ELSE 0 END) AS documents_done,
        SUM(CASE WHEN b.batch_status IN ('completed', 'failed') THEN 0 ELSE 1 END) AS open_batches,
        SUM(CASE WHEN b.batch_status = 'failed' THEN 1 ELSE 0 END) AS failed_batches
    FROM {{.Batch}} AS b
    GROUP BY b.run_id
)

SELECT{{.Top}}
    r.run_id,
    r.sys_name,
    r.kind,
    r.status,
    r.cancel,
    r.documents,
    COALESCE(p.documents_done, 0) AS documents_done,
    k.documents AS documents_known,
    r.at_least,
    {{.Percent "COALESCE(p.documents_done, 0)" "k.documents"}} AS done_percent,
    r.batches,
    COALESCE(p.open_batches, 0) AS open_batches,
    COALESCE(p.failed_batches, 0) AS failed_batches,
    r.started_at,
    r.handed_off_at,
    r.ended_at,
    {{.Seconds "r.started_at" (printf "COALESCE(r.ended_at, %s)" .Now)}} AS run_seconds,
    r.requested_by,
    r.error
FROM {{.Run}} AS r
INNER JOIN known AS k ON k.run_id = r.run_id
LEFT OUTER JOIN progress AS p ON p.run_id = r.run_id
WHERE r.sys_name = @sys_name OR r.sys_name IS NULL
ORDER BY r.run_number DESC{{.Limit}};
