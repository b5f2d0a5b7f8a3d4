-- Fails open batches of a cancelled run. A row of @rows: id.
{{template "begin.sql" . -}}
{{.Update .Batch "j"}}
SET status = 'failed', error = @cancelled, process_end_time = {{.Now}}, updated_at = {{.Now}}
FROM
    {{.List "rows" "listed_id char(64)"}} AS n
{{.JoinTarget .Batch "j"}}WHERE
    j.job_id = n.listed_id{{.BinaryCollation}}
    AND {{.NoIndex}}j.status IN ('pending_queue', 'pending_retry', 'queued', 'processing'){{.ForceOrder}};
