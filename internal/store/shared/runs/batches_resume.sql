-- Gives batches of a resumed run a new attempt, unless a worker claimed them meanwhile. A row of @rows: id.
{{template "begin.sql" . -}}
{{.Update "batch" "b"}}
SET
{{template "next_attempt.sql" .}}
FROM
    {{.List "rows" "listed_id varchar(64)"}} AS n
{{.JoinTarget "batch" "b"}}WHERE
    b.batch_id = n.listed_id{{.BinaryCollation}}
    AND (
        {{.NoIndex}}b.status IN ('pending_queue', 'pending_retry', 'queued')
        OR ({{.NoIndex}}b.status = 'failed' AND b.error = @cancelled)
    ){{.ForceOrder}};
