-- The latest runs and their progress, newest first. The runs are selected before any batch is read.
-- documents counts those that have a batch, done those of completed batches. The percentage is of the known
-- documents. Until the hand-off ends, that is the preview's number if it is larger.
WITH latest AS (
    SELECT{{.Top}}
        r.run_number,
        r.run_id,
        CASE
            WHEN r.handed_off_at IS NULL AND r.matched_count > r.documents THEN r.matched_count
            ELSE r.documents
        END AS documents_known
    FROM {{.Prefix}}run AS r
    WHERE r.sys_name = @sys_name
    ORDER BY r.run_number DESC{{.Limit}}
),

progress AS (
    SELECT
        k.run_id,
        SUM(CASE WHEN b.batch_status = 'completed' THEN CAST(b.total_count AS bigint) ELSE 0 END) AS documents_done,
        SUM(CASE WHEN b.batch_status IN ('completed', 'failed') THEN 0 ELSE 1 END) AS open_batches,
        SUM(CASE WHEN b.batch_status = 'failed' THEN 1 ELSE 0 END) AS failed_batches
    FROM latest AS k
    INNER JOIN {{.Prefix}}processing_job AS b ON b.run_id = k.run_id
    GROUP BY k.run_id
)

SELECT{{.Top}}
    r.run_id,
    r.sys_name,
    r.kind,
    r.status,
    r.cancel,
    r.documents,
    COALESCE(p.documents_done, 0) AS documents_done,
    k.documents_known,
    r.at_least,
    {{.Percent "COALESCE(p.documents_done, 0)" "k.documents_known"}} AS done_percent,
    r.batches,
    COALESCE(p.open_batches, 0) AS open_batches,
    COALESCE(p.failed_batches, 0) AS failed_batches,
    r.started_at,
    r.handed_off_at,
    r.ended_at,
    {{.Seconds "r.started_at" (printf "COALESCE(r.ended_at, %s)" .Now)}} AS run_seconds,
    r.requested_by,
    r.error
FROM latest AS k
INNER JOIN {{.Prefix}}run AS r ON r.run_id = k.run_id
LEFT OUTER JOIN progress AS p ON p.run_id = k.run_id
ORDER BY k.run_number DESC{{.Limit}};
