-- A purge reads the environment's oldest rows (retention.Store). It is the only one that deletes rows of these
-- tables, by a procedure: the app has no right to.
CREATE INDEX ix_run_ended ON sqlwriter.run (sys_name, ended_at) INCLUDE (status);
CREATE INDEX ix_audit_log_done ON sqlwriter.audit_log (sys_name, done_at);
CREATE INDEX ix_comparison_ended ON sqlwriter.comparison (sys_name, ended_at);
