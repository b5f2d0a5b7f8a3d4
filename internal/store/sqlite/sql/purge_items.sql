-- Deletes documents of a run.
DELETE FROM sqlwriter_batch_item
WHERE
    run_id = @run
    AND document_key IN (SELECT i.document_key FROM sqlwriter_batch_item AS i WHERE i.run_id = @run LIMIT @limit);
