-- Whether an operator asked the run to end.
SELECT r.cancel FROM {{.Prefix}}run AS r WHERE r.run_id = @run;
