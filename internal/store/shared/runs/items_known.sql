-- The documents of a list that the run has. A row of @rows: key.
SELECT i.document_key
FROM
    {{.List "rows" "listed_key int"}} AS n
CROSS JOIN {{.Prefix}}batch_item AS i
WHERE i.run_id = @run AND i.document_key = {{.Hash "n.listed_key"}}{{.ForceOrder}};
