-- SQL Writer: schema sqlwriter. Expand only; files that were run are left out.
-- Run it in the database of IVCE_DTL, by sqlcmd -b or another tool that stops at an error.
SET QUOTED_IDENTIFIER ON;
SET ANSI_NULLS ON;
SET XACT_ABORT ON;
BEGIN TRANSACTION;
DECLARE @result int;
EXEC @result = sp_getapplock
    @Resource = N'sqlwriter.migrate', @LockMode = N'Exclusive', @LockOwner = N'Transaction', @LockTimeout = 60000;
IF @result < 0
    THROW 52744, N'another migration is running', 1;
GO
IF @@TRANCOUNT = 0
    THROW 52744, N'an earlier batch failed: nothing was changed', 1;
IF SCHEMA_ID(N'sqlwriter') IS NULL
    EXEC (N'CREATE SCHEMA sqlwriter AUTHORIZATION dbo');
IF OBJECT_ID(N'sqlwriter.migration', N'U') IS NULL
    CREATE TABLE sqlwriter.migration (
        number int NOT NULL,
        name nvarchar(200) NOT NULL,
        checksum char(64) NOT NULL,
        applied_at datetime2(3) NOT NULL DEFAULT SYSUTCDATETIME(),
        applied_by nvarchar(256) NOT NULL DEFAULT SUSER_SNAME(),
        CONSTRAINT pk_migration PRIMARY KEY (number)
    );
GO
-- 0001_ledger
IF @@TRANCOUNT = 0
    THROW 52744, N'an earlier batch failed: nothing was changed', 1;
IF NOT EXISTS (SELECT 1 FROM sqlwriter.migration WHERE number = 1)
    BEGIN
        EXEC (N'
-- The ledger: which document each line was written from, for ever (never purged). It serves idempotency, the guard against
-- older results and lost acknowledgements. The row hashes are of the rows as they were written, and
-- show later edits. A failure mark and an adopted row have none (docs/requirements.md R54).
-- Keys and hashes are lower-case hex, compared byte by byte whatever the database''s collation.
CREATE TABLE sqlwriter.ledger (
    detail_id bigint NOT NULL,
    version_us bigint NOT NULL,
    document_key char(64) COLLATE Latin1_General_BIN2 NOT NULL,
    document_id nvarchar(1023) NOT NULL,
    source_ts bigint NOT NULL,
    content_hash char(64) COLLATE Latin1_General_BIN2 NULL,
    hash_version int NULL,
    sys_name nvarchar(256) COLLATE Latin1_General_BIN2 NOT NULL,
    detail_row_hash char(64) COLLATE Latin1_General_BIN2 NULL,
    tracking_row_hash char(64) COLLATE Latin1_General_BIN2 NULL,
    outcome varchar(10) COLLATE Latin1_General_BIN2 NOT NULL,
    write_id uniqueidentifier NOT NULL,
    applied_at datetime2(3) NOT NULL,
    CONSTRAINT pk_ledger PRIMARY KEY CLUSTERED (detail_id),
    CONSTRAINT ck_ledger_outcome CHECK (outcome IN (''applied'', ''failed'', ''adopted'')),
    CONSTRAINT ck_ledger_hash CHECK (
        (outcome = ''failed'' AND content_hash IS NULL AND hash_version IS NULL)
        OR (outcome <> ''failed'' AND content_hash IS NOT NULL AND hash_version IS NOT NULL)
    )
);
');
        INSERT INTO sqlwriter.migration (number, name, checksum)
        VALUES (1, N'0001_ledger', 'a0e7097b6dc17e9e86642ba62d7d5947b9b1316e1dae2eeffbb6ce4e0a86ad69');
    END;
GO
-- 0002_adoption
IF @@TRANCOUNT = 0
    THROW 52744, N'an earlier batch failed: nothing was changed', 1;
IF NOT EXISTS (SELECT 1 FROM sqlwriter.migration WHERE number = 2)
    BEGIN
        EXEC (N'
-- The state of the adoption of a database with history (internal/adopt), in at most one row. counts has the counts of
-- the run as JSON; adopted and marked are counted here.
CREATE TABLE sqlwriter.adoption (
    id int NOT NULL,
    phase varchar(10) COLLATE Latin1_General_BIN2 NOT NULL,
    run_id varchar(36) COLLATE Latin1_General_BIN2 NOT NULL,
    watermark bigint NOT NULL,
    counts nvarchar(max) NOT NULL,
    adopted bigint NOT NULL,
    marked bigint NOT NULL,
    who nvarchar(256) NOT NULL,
    started_at datetime2(3) NOT NULL,
    finished_at datetime2(3) NULL,
    CONSTRAINT pk_adoption PRIMARY KEY (id),
    CONSTRAINT ck_adoption_one CHECK (id = 1),
    CONSTRAINT ck_adoption_phase CHECK (phase IN (''running'', ''done'', ''empty''))
);
');
        INSERT INTO sqlwriter.migration (number, name, checksum)
        VALUES (2, N'0002_adoption', '82f8aa62051b2afc6d4e9b53a6eeac573cf1ab7d20d58ebb4bd1cfaa7a6ad4c7');
    END;
GO
-- 0003_operations
IF @@TRANCOUNT = 0
    THROW 52744, N'an earlier batch failed: nothing was changed', 1;
IF NOT EXISTS (SELECT 1 FROM sqlwriter.migration WHERE number = 3)
    BEGIN
        EXEC (N'
-- The audit log: one entry for each action of an operator and each step of a run, never changed. detail is JSON.
-- All times are UTC by the database''s clock.
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
');
        INSERT INTO sqlwriter.migration (number, name, checksum)
        VALUES (3, N'0003_operations', '184ad854ecc952907a2c7ca2ebe88826cb47d2b7f7a10a90558e2fbc724e6571');
    END;
GO
-- 0004_runs
IF @@TRANCOUNT = 0
    THROW 52744, N'an earlier batch failed: nothing was changed', 1;
IF NOT EXISTS (SELECT 1 FROM sqlwriter.migration WHERE number = 4)
    BEGIN
        EXEC (N'
-- Runs (internal/run). run is one row from request to receipt, job one batch of a run, batch_item one of its documents,
-- worker one working invocation, error_detail one failure of a document. internal/run/states.go has the states and
-- their changes.
-- All times are UTC by the database''s clock. filter and outcomes are JSON; a completed batch has outcomes, its
-- documents by outcome. heartbeat_at is the last sign of life.
-- Statuses and kinds are not checked, because a later build may have more.
-- There are no foreign keys, because guarded statements alone add and change rows.
-- Keys and statuses are compared byte by byte under any collation of the database.
CREATE TABLE sqlwriter.run (
    run_id nvarchar(64) COLLATE Latin1_General_BIN2 NOT NULL,
    run_number bigint IDENTITY (1, 1) NOT NULL,
    sys_name nvarchar(256) COLLATE Latin1_General_BIN2 NOT NULL,
    kind nvarchar(40) NOT NULL,
    filter nvarchar(max) NULL,
    named_count int NOT NULL CONSTRAINT df_run_named DEFAULT 0,
    pattern nvarchar(40) COLLATE Latin1_General_BIN2 NOT NULL,
    rate_per_minute int NOT NULL CONSTRAINT df_run_rate DEFAULT 0,
    document_limit int NOT NULL CONSTRAINT df_run_limit DEFAULT 0,
    matched_count int NOT NULL CONSTRAINT df_run_matched DEFAULT 0,
    at_least bit NOT NULL CONSTRAINT df_run_at_least DEFAULT 0,
    requested_by nvarchar(256) NOT NULL,
    why nvarchar(2000) NOT NULL,
    status varchar(30) COLLATE Latin1_General_BIN2 NOT NULL,
    cancel bit NOT NULL,
    error nvarchar(2000) NULL,
    watermark nvarchar(max) NULL,
    documents int NOT NULL CONSTRAINT df_run_documents DEFAULT 0,
    batches int NOT NULL CONSTRAINT df_run_batches DEFAULT 0,
    owner nvarchar(64) COLLATE Latin1_General_BIN2 NULL,
    epoch int NOT NULL CONSTRAINT df_run_epoch DEFAULT 0,
    lost_managers int NOT NULL CONSTRAINT df_run_lost_managers DEFAULT 0,
    started_at datetime2(3) NOT NULL,
    handed_off_at datetime2(3) NULL,
    ended_at datetime2(3) NULL,
    heartbeat_at datetime2(3) NOT NULL,
    next_at datetime2(3) NULL,
    CONSTRAINT pk_run PRIMARY KEY (run_id),
    CONSTRAINT uq_run_number UNIQUE (run_number)
);
-- The timer reads the running runs, oldest first, and the table only grows.
CREATE INDEX ix_run_status ON sqlwriter.run (status, run_number);
CREATE TABLE sqlwriter.job (
    job_id char(64) COLLATE Latin1_General_BIN2 NOT NULL,
    job_number bigint IDENTITY (1, 1) NOT NULL,
    kind varchar(20) COLLATE Latin1_General_BIN2 NOT NULL CONSTRAINT df_job_kind DEFAULT ''batch'',
    run_id nvarchar(64) COLLATE Latin1_General_BIN2 NOT NULL,
    number int NOT NULL,
    status varchar(20) COLLATE Latin1_General_BIN2 NOT NULL,
    attempt int NOT NULL,
    queue_attempt_count int NOT NULL CONSTRAINT df_job_queue_attempt_count DEFAULT 0,
    lost_workers int NOT NULL CONSTRAINT df_job_lost_workers DEFAULT 0,
    last_queue_error nvarchar(2000) NULL,
    error nvarchar(2000) NULL,
    owner nvarchar(64) COLLATE Latin1_General_BIN2 NULL,
    epoch int NOT NULL CONSTRAINT df_job_epoch DEFAULT 0,
    heartbeat_at datetime2(3) NULL,
    queued_at datetime2(3) NULL,
    claimed_at datetime2(3) NULL,
    process_start_time datetime2(3) NULL,
    process_end_time datetime2(3) NULL,
    created_at datetime2(3) NOT NULL,
    updated_at datetime2(3) NOT NULL,
    total_count int NOT NULL,
    success_count int NOT NULL CONSTRAINT df_job_success_count DEFAULT 0,
    failure_count int NOT NULL CONSTRAINT df_job_failure_count DEFAULT 0,
    outcomes nvarchar(1000) COLLATE Latin1_General_BIN2 NULL,
    CONSTRAINT pk_job PRIMARY KEY (job_id),
    CONSTRAINT uq_job_job_number UNIQUE (job_number),
    CONSTRAINT uq_job_number UNIQUE (run_id, number)
);
-- The timer reads batches by status over all runs. Statements about one run name all statuses, so each is a range of
-- this index. Only this index changes with every status. Lists of an operator without a status use the unique
-- (run_id, number).
CREATE INDEX ix_job_status ON sqlwriter.job (status, run_id, number);
-- Reports read the last days. created_at never changes; the end time changes when a batch ends or is requeued.
CREATE INDEX ix_job_created ON sqlwriter.job (created_at);
CREATE INDEX ix_job_ended ON sqlwriter.job (process_end_time);
CREATE TABLE sqlwriter.batch_item (
    run_id nvarchar(64) COLLATE Latin1_General_BIN2 NOT NULL,
    document_key char(64) COLLATE Latin1_General_BIN2 NOT NULL,
    document_id nvarchar(1023) NOT NULL,
    job_id char(64) COLLATE Latin1_General_BIN2 NOT NULL,
    position int NOT NULL,
    outcome varchar(20) COLLATE Latin1_General_BIN2 NULL,
    code nvarchar(256) NULL,
    updated_at datetime2(3) NULL,
    CONSTRAINT pk_batch_item PRIMARY KEY (run_id, document_key)
);
-- A worker reads the documents of its batch in their order, and counts them by outcome.
CREATE INDEX ix_batch_item_job ON sqlwriter.batch_item (job_id, position) INCLUDE (outcome);
CREATE TABLE sqlwriter.worker (
    worker_id nvarchar(64) COLLATE Latin1_General_BIN2 NOT NULL,
    kind varchar(20) COLLATE Latin1_General_BIN2 NOT NULL,
    instance nvarchar(256) NOT NULL,
    status varchar(20) COLLATE Latin1_General_BIN2 NOT NULL,
    run_id nvarchar(64) COLLATE Latin1_General_BIN2 NOT NULL,
    job_id char(64) COLLATE Latin1_General_BIN2 NULL,
    documents_processed int NOT NULL CONSTRAINT df_worker_documents DEFAULT 0,
    started_at datetime2(3) NOT NULL,
    completed_at datetime2(3) NULL,
    heartbeat_at datetime2(3) NOT NULL,
    CONSTRAINT pk_worker PRIMARY KEY (worker_id)
);
-- The timer reads the running workers among all that there were. The heartbeat changes too often for an index.
CREATE INDEX ix_worker_status ON sqlwriter.worker (status, run_id);
-- Reports read ended workers by their start, which never changes.
CREATE INDEX ix_worker_started ON sqlwriter.worker (started_at);
-- entity_id is the main line''s id, NULL when the document names none.
CREATE TABLE sqlwriter.error_detail (
    error_id bigint IDENTITY (1, 1) NOT NULL,
    sys_name nvarchar(256) COLLATE Latin1_General_BIN2 NOT NULL,
    run_id nvarchar(64) COLLATE Latin1_General_BIN2 NOT NULL,
    job_id char(64) COLLATE Latin1_General_BIN2 NOT NULL,
    document_id nvarchar(1023) NOT NULL,
    entity_id bigint NULL,
    error_code nvarchar(256) NOT NULL,
    error_message nvarchar(2000) NOT NULL,
    error_type varchar(20) COLLATE Latin1_General_BIN2 NOT NULL,
    retry_count int NOT NULL,
    is_retryable bit NOT NULL,
    created_at datetime2(3) NOT NULL,
    CONSTRAINT pk_error_detail PRIMARY KEY (error_id)
);
-- A batch is shown with its latest details.
CREATE INDEX ix_error_detail_job ON sqlwriter.error_detail (job_id, error_id);
-- Reports read an environment''s latest rows, and a purge reads its oldest.
CREATE INDEX ix_error_detail_created ON sqlwriter.error_detail (sys_name, created_at);
-- The batches under the names of the monitoring queries (docs/requirements.md R86). A view needs a batch of its own.
EXEC (N''CREATE VIEW sqlwriter.batch AS
SELECT
    j.run_id, j.job_id AS batch_id, j.number AS batch_number, j.status AS batch_status, j.queue_attempt_count,
    j.last_queue_error, j.queued_at, j.created_at, j.updated_at, j.process_start_time, j.process_end_time, j.total_count,
    j.success_count, j.failure_count, j.run_id AS parent_job_id
FROM sqlwriter.job AS j;'');
-- The jobs under the names of docs/requirements.md R86.
EXEC (N''CREATE VIEW sqlwriter.processing_job AS
SELECT
    j.job_id, j.status, j.process_start_time AS started_at, j.process_end_time AS completed_at, j.error AS error_message,
    j.heartbeat_at AS last_heartbeat
FROM sqlwriter.job AS j;'');
');
        INSERT INTO sqlwriter.migration (number, name, checksum)
        VALUES (4, N'0004_runs', '5dcbcb83f536e67f268801f8a71eb235dee45f4be824032316577104a2ab9fb4');
    END;
GO
-- 0005_heartbeat
IF @@TRANCOUNT = 0
    THROW 52744, N'an earlier batch failed: nothing was changed', 1;
IF NOT EXISTS (SELECT 1 FROM sqlwriter.migration WHERE number = 5)
    BEGIN
        EXEC (N'
-- The heartbeat: one row for each environment. Committing a higher number shows that the database takes writes.
-- database_id is made with the row and tells databases apart. raised_at is UTC by the database''s clock.
-- An environment''s name is compared byte by byte under any collation of the database.
CREATE TABLE sqlwriter.heartbeat (
    sys_name nvarchar(256) COLLATE Latin1_General_BIN2 NOT NULL,
    database_id uniqueidentifier NOT NULL,
    number bigint NOT NULL,
    raised_at datetime2(3) NOT NULL,
    CONSTRAINT pk_heartbeat PRIMARY KEY (sys_name)
);
');
        INSERT INTO sqlwriter.migration (number, name, checksum)
        VALUES (5, N'0005_heartbeat', 'c0d1f1438c7467616fba4356cce6849d4c63ef94af4d87f19158f179abe09a3a');
    END;
GO
-- 0006_procedures
IF @@TRANCOUNT = 0
    THROW 52744, N'an earlier batch failed: nothing was changed', 1;
IF NOT EXISTS (SELECT 1 FROM sqlwriter.migration WHERE number = 6)
    BEGIN
        EXEC (N'
-- The installed sets of procedures, one for each build and settings file. A set''s hash ends the names of its
-- procedures; inputs lists everything that it depends on. The product never drops a set, because a stopped build may
-- need it.
-- A login with rights on the procedures of sqlwriter_preview alone can read verdicts and write nothing.
CREATE TABLE sqlwriter.procedure_set (
    set_hash char(12) COLLATE Latin1_General_BIN2 NOT NULL,
    inputs nvarchar(max) NOT NULL,
    installed_at datetime2(3) NOT NULL DEFAULT SYSUTCDATETIME(),
    installed_by nvarchar(256) NOT NULL DEFAULT SUSER_SNAME(),
    CONSTRAINT pk_procedure_set PRIMARY KEY (set_hash)
);
IF SCHEMA_ID(N''sqlwriter_preview'') IS NULL
    EXEC (N''CREATE SCHEMA sqlwriter_preview AUTHORIZATION dbo'');
');
        INSERT INTO sqlwriter.migration (number, name, checksum)
        VALUES (6, N'0006_procedures', 'ec860be23164866c43301d5da3b2cc7102d91c32083a235ada319852a23afbeb');
    END;
GO
-- 0007_findings
IF @@TRANCOUNT = 0
    THROW 52744, N'an earlier batch failed: nothing was changed', 1;
IF NOT EXISTS (SELECT 1 FROM sqlwriter.migration WHERE number = 7)
    BEGIN
        EXEC (N'
-- What a comparison of SQL with the documents found (internal/reconcile): one row for each finding. One that is no
-- longer true is deleted. document_key is the SHA-256 of document_id. What a first look saw is a suspect, until a
-- second one sees it with the same mark: then it is sure.
-- All times are UTC by the database''s clock. Classes are not checked, because a later build may have more.
-- Keys are compared byte by byte under any collation of the database.
CREATE TABLE sqlwriter.finding (
    sys_name nvarchar(256) COLLATE Latin1_General_BIN2 NOT NULL,
    class varchar(40) COLLATE Latin1_General_BIN2 NOT NULL,
    detail_id bigint NOT NULL,
    document_key char(64) COLLATE Latin1_General_BIN2 NOT NULL,
    document_id nvarchar(1023) NOT NULL,
    first_seen datetime2(3) NOT NULL,
    last_seen datetime2(3) NOT NULL,
    mark varchar(64) COLLATE Latin1_General_BIN2 NOT NULL,
    sure bit NOT NULL,
    detail nvarchar(1000) NOT NULL,
    mends bit NOT NULL,
    CONSTRAINT pk_finding PRIMARY KEY (sys_name, class, detail_id, document_key)
);
-- One row for each comparison. request has the documents that it names, as JSON, until it has ended. step counts what
-- was saved: only whoever read it before may save the next one.
CREATE TABLE sqlwriter.comparison (
    sys_name nvarchar(256) COLLATE Latin1_General_BIN2 NOT NULL,
    comparison_id varchar(64) COLLATE Latin1_General_BIN2 NOT NULL,
    request nvarchar(max) NOT NULL CHECK (ISJSON(request) = 1),
    named bit NOT NULL,
    night bit NOT NULL,
    requested_by nvarchar(256) NOT NULL,
    why nvarchar(2000) NOT NULL,
    step bigint NOT NULL,
    position nvarchar(max) NOT NULL,
    counts nvarchar(max) NOT NULL CHECK (ISJSON(counts) = 1),
    error nvarchar(1000) NULL,
    begun_at datetime2(3) NOT NULL,
    moved_at datetime2(3) NOT NULL,
    ended_at datetime2(3) NULL,
    CONSTRAINT pk_comparison PRIMARY KEY (sys_name, comparison_id)
);
-- The first of those that go on, and the last that ended, by their begin.
CREATE INDEX ix_comparison_begun ON sqlwriter.comparison (sys_name, begun_at, comparison_id);
');
        INSERT INTO sqlwriter.migration (number, name, checksum)
        VALUES (7, N'0007_findings', '6bb7b26f13d308a9c37a659b9e628ec64cf85303242d25f1032d2887fa463b6c');
    END;
GO
-- 0008_retention
IF @@TRANCOUNT = 0
    THROW 52744, N'an earlier batch failed: nothing was changed', 1;
IF NOT EXISTS (SELECT 1 FROM sqlwriter.migration WHERE number = 8)
    BEGIN
        EXEC (N'
-- A purge reads the environment''s oldest rows (retention.Store). It is the only one that deletes rows of these
-- tables, by a procedure: the app has no right to.
CREATE INDEX ix_run_ended ON sqlwriter.run (sys_name, ended_at) INCLUDE (status);
CREATE INDEX ix_audit_log_done ON sqlwriter.audit_log (sys_name, done_at);
CREATE INDEX ix_comparison_ended ON sqlwriter.comparison (sys_name, ended_at);
');
        INSERT INTO sqlwriter.migration (number, name, checksum)
        VALUES (8, N'0008_retention', '82d4c57d67b22599e1e6c254c37e910b13c1aab447da47ef84ea512cf3665e56');
    END;
GO
