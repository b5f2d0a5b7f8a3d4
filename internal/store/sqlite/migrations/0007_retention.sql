-- A purge reads the environment's oldest rows (retention.Store). Nothing else deletes rows of these tables.
-- Two indexes begin with the time: one that began with the environment would be taken for lists of its latest rows,
-- and all of them would be sorted.
CREATE INDEX sqlwriter_ix_run_ended ON sqlwriter_run (ended_at, sys_name);
CREATE INDEX sqlwriter_ix_audit_log_done ON sqlwriter_audit_log (done_at, sys_name);
CREATE INDEX sqlwriter_ix_comparison_ended ON sqlwriter_comparison (ended_at, sys_name);
