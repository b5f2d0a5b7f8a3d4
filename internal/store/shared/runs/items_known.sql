-- The documents of a list that the run has. A row of @rows: key.
SELECT i.document_key
FROM
    {{.List "rows" "listed_key char(64)"}} AS n
CROSS JOIN {{.BatchItem}} AS i
WHERE i.run_id = @run AND i.document_key = n.listed_key{{.BinaryCollation}}{{.ForceOrder}};
