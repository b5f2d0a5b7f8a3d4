-- Marks a run whose rows begin to go, so that nothing continues it.
UPDATE sqlwriter_run SET status = 'purged' WHERE run_id = @run;
