-- Gives batches of dead workers a new attempt, unless a heartbeat came meanwhile. A row of @rows: id, attempt.
{{template "begin.sql" . -}}
{{.Update .Batch "j"}}
SET
    status = 'pending_retry', attempt = j.attempt + 1,
    lost_workers = j.lost_workers + CASE WHEN j.owner IS NULL THEN 0 ELSE 1 END,
    owner = NULL, heartbeat_at = NULL, updated_at = {{.Now}}
FROM
    {{.List "rows" "listed_id char(64)" "listed_attempt int"}} AS n
{{.JoinTarget .Batch "j"}}WHERE
    j.job_id = n.listed_id{{.BinaryCollation}} AND j.attempt = n.listed_attempt AND {{.NoIndex}}j.status = 'processing'
    AND (
        (j.owner IS NOT NULL AND j.heartbeat_at <= {{.Ago "stale"}})
        OR (j.owner IS NULL AND j.updated_at <= {{.Ago "released"}})
    ){{.ForceOrder}};
