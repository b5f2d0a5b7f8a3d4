-- Counts the outcomes of failed batches. A row of @rows: id.
{{template "begin.sql" . -}}
{{.Update "batch" "b"}}
SET
    success_count = (
        SELECT COUNT(*) FROM {{.Prefix}}batch_item AS i
        WHERE i.batch_id = b.batch_id AND i.outcome NOT IN ({{.Failures}})
    ),
    failure_count = (
        SELECT COUNT(*) FROM {{.Prefix}}batch_item AS i
        WHERE i.batch_id = b.batch_id AND i.outcome IN ({{.Failures}})
    )
FROM
    {{.List "rows" "listed_id varchar(64)"}} AS n
{{.JoinTarget "batch" "b"}}WHERE
    b.batch_id = n.listed_id{{.BinaryCollation}}{{.ForceOrder}};
