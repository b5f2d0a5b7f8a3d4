-- Deletes batches of a run.
DELETE FROM sqlwriter_batch
WHERE serial_number IN (SELECT b.serial_number FROM sqlwriter_batch AS b WHERE b.run_id = @run LIMIT @limit);
