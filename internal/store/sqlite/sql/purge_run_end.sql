-- Deletes a run of which nothing else is left.
DELETE FROM sqlwriter_run WHERE run_id = @run;
