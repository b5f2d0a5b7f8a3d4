-- Batches of a run that runs again are sent again, unless a worker came meanwhile. A row of @rows is an array: id.
{{template "begin.sql" . -}}
{{.Update .Batch "j"}}
SET
{{template "next_attempt.sql" .}}
FROM
    {{.List "rows" "listed_id char(64)"}} AS n
{{.JoinTarget .Batch "j"}}WHERE
    j.job_id = n.listed_id{{.BinaryCollation}}
    AND (
        {{.NoIndex}}j.status IN ('pending_queue', 'pending_retry', 'queued')
        OR ({{.NoIndex}}j.status = 'failed' AND j.error = @cancelled)
    ){{.ForceOrder}};
