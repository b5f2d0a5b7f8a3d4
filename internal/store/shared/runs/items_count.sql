-- Counts the documents of a batch by outcome.
SELECT
    i.outcome, COUNT(*) AS documents
FROM {{.Prefix}}batch_item AS i
WHERE i.batch_id = @batch
GROUP BY i.outcome;
