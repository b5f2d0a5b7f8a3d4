-- The documents of a batch that have no outcome, in their order.
SELECT i.document_id FROM {{.BatchItem}} AS i WHERE i.job_id = @job AND i.outcome IS NULL ORDER BY i.position;
