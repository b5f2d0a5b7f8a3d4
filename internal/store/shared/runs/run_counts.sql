-- The counts of a run without documents, as JSON.
SELECT r.counts FROM {{.Run}} AS r WHERE r.run_id = @run;
