-- Batches of a run that runs again are sent again, unless a worker came meanwhile. A row of @rows is an array: id.
{{template "begin.sql" . -}}
{{.Update .Batch "j"}}
SET
{{template "again.sql" .}}
FROM
    {{.List "rows" "listed_id char(64)"}} AS n
{{.Beside .Batch "j"}}WHERE
    j.job_id = n.listed_id{{.Bytes}}
    AND (
        {{.Late}}j.status IN ('pending_queue', 'pending_retry', 'queued')
        OR ({{.Late}}j.status = 'failed' AND j.error = @cancelled)
    ){{.InOrder}};
