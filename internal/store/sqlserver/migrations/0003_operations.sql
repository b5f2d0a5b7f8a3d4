-- The actions of operators (audit_log, one entry for each, never changed) and their long actions (run, one row from
-- request to receipt). filter, counts and detail are JSON. heartbeat_at is the time of the run's last sign of life.
-- All times are UTC by the database's clock. Statuses and kinds are not checked, because a later build may have more.
-- A run's id is compared byte by byte under any collation of the database.
CREATE TABLE sqlwriter.run (
    run_id nvarchar(64) COLLATE Latin1_General_BIN2 NOT NULL,
    run_number bigint IDENTITY (1, 1) NOT NULL,
    sys_name nvarchar(256) COLLATE Latin1_General_BIN2 NOT NULL,
    kind nvarchar(40) NOT NULL,
    filter nvarchar(max) NULL,
    requested_by nvarchar(256) NOT NULL,
    why nvarchar(2000) NOT NULL,
    status varchar(30) COLLATE Latin1_General_BIN2 NOT NULL,
    cancel bit NOT NULL,
    counts nvarchar(max) NOT NULL,
    started_at datetime2(3) NOT NULL,
    ended_at datetime2(3) NULL,
    heartbeat_at datetime2(3) NOT NULL,
    CONSTRAINT pk_run PRIMARY KEY (run_id),
    CONSTRAINT uq_run_number UNIQUE (run_number)
);
CREATE TABLE sqlwriter.audit_log (
    audit_id bigint IDENTITY (1, 1) NOT NULL,
    done_at datetime2(3) NOT NULL,
    sys_name nvarchar(256) COLLATE Latin1_General_BIN2 NOT NULL,
    action nvarchar(40) NOT NULL,
    done_by nvarchar(256) NOT NULL,
    why nvarchar(2000) NOT NULL,
    subject nvarchar(1023) NOT NULL,
    detail nvarchar(max) NULL,
    CONSTRAINT pk_audit_log PRIMARY KEY (audit_id)
);
