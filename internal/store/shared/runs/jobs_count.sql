-- Counts the outcomes of failed batches. A row of @rows: id.
{{template "begin.sql" . -}}
{{.Update .Batch "j"}}
SET
    success_count = (
        SELECT COUNT(*) FROM {{.BatchItem}} AS i
        WHERE i.job_id = j.job_id AND i.outcome NOT IN ({{.Failures}})
    ),
    failure_count = (
        SELECT COUNT(*) FROM {{.BatchItem}} AS i
        WHERE i.job_id = j.job_id AND i.outcome IN ({{.Failures}})
    )
FROM
    {{.List "rows" "listed_id char(64)"}} AS n
{{.JoinTarget .Batch "j"}}WHERE
    j.job_id = n.listed_id{{.BinaryCollation}}{{.ForceOrder}};
