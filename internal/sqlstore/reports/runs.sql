-- The latest runs, the newest first, and how far they are. Documents are those that were handed off or are to be, done are
-- those of completed batches.
WITH progress AS (
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
    {{.Percent "COALESCE(p.documents_done, 0)" "r.documents"}} AS done_percent,
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
LEFT OUTER JOIN progress AS p ON p.run_id = r.run_id
ORDER BY r.run_number DESC{{.Limit}};
