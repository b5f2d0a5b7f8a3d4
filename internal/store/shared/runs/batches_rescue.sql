-- Gives batches of dead workers a new attempt, unless a heartbeat came meanwhile. A row of @rows: id, attempt.
{{template "begin.sql" . -}}
{{.Update "batch" "b"}}
SET
    status = 'pending_retry', attempt = b.attempt + 1,
    lost_workers = b.lost_workers + CASE WHEN b.owner IS NULL THEN 0 ELSE 1 END,
    owner = NULL, heartbeat_at = NULL, updated_at = {{.Now}}
FROM
    {{.List "rows" "listed_id varchar(64)" "listed_attempt int"}} AS n
{{.JoinTarget "batch" "b"}}WHERE
    b.batch_id = n.listed_id{{.BinaryCollation}} AND b.attempt = n.listed_attempt AND {{.NoIndex}}b.status = 'processing'
    AND (
        (b.owner IS NOT NULL AND b.heartbeat_at <= {{.Ago "stale"}})
        OR (b.owner IS NULL AND b.updated_at <= {{.Ago "released"}})
    ){{.ForceOrder}};
