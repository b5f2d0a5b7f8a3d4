-- The audit log: one entry for each action of an operator and each step of a run, never changed. detail is JSON.
-- All times are UTC by the database's clock.
CREATE TABLE sqlwriter.audit_log (
    audit_id bigint IDENTITY (1, 1) NOT NULL,
    done_at datetime2(3) NOT NULL,
    sys_name nvarchar(256) COLLATE Latin1_General_BIN2 NOT NULL,
    level varchar(10) COLLATE Latin1_General_BIN2 NULL,
    action nvarchar(40) NOT NULL,
    done_by nvarchar(256) NOT NULL,
    why nvarchar(2000) NOT NULL,
    subject nvarchar(1023) NOT NULL,
    run_id nvarchar(64) COLLATE Latin1_General_BIN2 NULL,
    job_id char(64) COLLATE Latin1_General_BIN2 NULL,
    detail nvarchar(max) NULL,
    CONSTRAINT pk_audit_log PRIMARY KEY (audit_id)
);
-- The reports read the latest entries of a level. Most entries are steps of workers; of those of other environments
-- only the index is read. The next indexes find the latest entries of an action, and of a run by level and by action.
CREATE INDEX ix_audit_log_level ON sqlwriter.audit_log (level, audit_id) INCLUDE (sys_name);
CREATE INDEX ix_audit_log_action ON sqlwriter.audit_log (action, audit_id) INCLUDE (sys_name, level);
CREATE INDEX ix_audit_log_run ON sqlwriter.audit_log (run_id, level, audit_id) INCLUDE (sys_name);
CREATE INDEX ix_audit_log_run_action ON sqlwriter.audit_log (run_id, action, audit_id) INCLUDE (sys_name, level);
