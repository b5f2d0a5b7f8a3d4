-- The documents of a batch without an outcome, in their order.
SELECT i.document_id FROM {{.Prefix}}batch_item AS i WHERE i.batch_id = @batch AND i.outcome IS NULL ORDER BY i.position;
