-- Whether somebody asked to end a run.
SELECT r.cancel FROM {{.Run}} AS r WHERE r.run_id = @id;
