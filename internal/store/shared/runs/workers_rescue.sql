-- Fails running workers whose heartbeat is older than @stale. A row of @rows: id.
{{template "begin.sql" . -}}
{{.Update "worker" "w"}}
SET status = 'FAILED', completed_at = {{.Now}}
FROM
    {{.List "rows" "listed_id varchar(64)"}} AS n
{{.JoinTarget "worker" "w"}}WHERE
    w.worker_id = n.listed_id{{.BinaryCollation}} AND {{.NoIndex}}w.status = 'RUNNING'
    AND w.heartbeat_at <= {{.Ago "stale"}}{{.ForceOrder}};
