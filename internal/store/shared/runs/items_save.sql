-- Saves outcomes of documents of a batch and replaces earlier ones. A row of @rows: key, run, outcome, code.
{{template "begin.sql" . -}}
{{.Update "batch_item" "i"}}
SET outcome = n.listed_outcome, code = n.listed_code, updated_at = {{.Now}}
FROM
    {{.List "rows" "listed_key int" "listed_run varchar(64)" "listed_outcome varchar(20)" "listed_code nvarchar(256)"}} AS n
{{.JoinTarget "batch_item" "i"}}WHERE
    i.run_id = n.listed_run{{.BinaryCollation}}
    AND i.document_key = {{.Hash "n.listed_key"}}
    AND {{.NoIndex}}i.batch_id = @batch{{.ForceOrder}};
