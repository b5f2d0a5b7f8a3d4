-- Fails open batches of a cancelled run. A row of @rows: id.
{{template "begin.sql" . -}}
{{.Update "batch" "b"}}
SET status = 'failed', error = @cancelled, process_end_time = {{.Now}}, updated_at = {{.Now}}
FROM
    {{.List "rows" "listed_id varchar(64)"}} AS n
{{.JoinTarget "batch" "b"}}WHERE
    b.batch_id = n.listed_id{{.BinaryCollation}}
    AND {{.NoIndex}}b.status IN ('pending_queue', 'pending_retry', 'queued', 'processing'){{.ForceOrder}};
