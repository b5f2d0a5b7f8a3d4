-- Gives batches of a resumed run a new attempt, unless a worker claimed them meanwhile. A row of @rows: id.
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
