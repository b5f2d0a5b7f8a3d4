-- The waiting batches of a run. Their index covers the query, so the query never locks an index row while it waits
-- for a table row. Such a reader could deadlock with a writer that locks the table row first.
SELECT b.batch_id
FROM {{.Prefix}}batch AS b
WHERE b.run_id = @run AND b.status IN ('pending_queue', 'pending_retry', 'queued');
