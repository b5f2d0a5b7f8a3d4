-- The audit log: one entry for each action of an operator and each step of a run, never changed. detail is JSON.
-- All times are UTC by the database's clock.
CREATE TABLE sqlwriter_audit_log (
    audit_id INTEGER PRIMARY KEY,
    done_at TEXT NOT NULL,
    sys_name TEXT NOT NULL,
    level TEXT,
    action TEXT NOT NULL,
    done_by TEXT NOT NULL,
    why TEXT NOT NULL,
    subject TEXT NOT NULL,
    run_id TEXT,
    job_id TEXT,
    detail TEXT CHECK (json_valid(detail))
);
-- The reports read the latest entries of a level. Most entries are steps of workers; of those of other environments
-- only the index is read. The next indexes find the latest entries of an action, and of a run by level and by action.
CREATE INDEX sqlwriter_ix_audit_log_level ON sqlwriter_audit_log (level, audit_id, sys_name);
CREATE INDEX sqlwriter_ix_audit_log_action ON sqlwriter_audit_log (action, audit_id, sys_name, level);
CREATE INDEX sqlwriter_ix_audit_log_run ON sqlwriter_audit_log (run_id, level, audit_id, sys_name);
CREATE INDEX sqlwriter_ix_audit_log_run_action ON sqlwriter_audit_log (run_id, action, audit_id, sys_name, level);
