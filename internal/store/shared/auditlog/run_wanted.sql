-- Whether an operator asked the run to end.
SELECT r.cancel FROM {{.Run}} AS r WHERE r.run_id = @id;
