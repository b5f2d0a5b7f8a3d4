-- SQL Writer: schema sqlwriter. Expand only; files that were run are left out.
-- Run it in the database of IVCE_DTL, by sqlcmd -b or another tool that stops at an error.
SET QUOTED_IDENTIFIER ON;
SET ANSI_NULLS ON;
SET XACT_ABORT ON;
SET LOCK_TIMEOUT 5000;
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
-- 0001_schema
IF @@TRANCOUNT = 0
    THROW 52744, N'an earlier batch failed: nothing was changed', 1;
IF NOT EXISTS (SELECT 1 FROM sqlwriter.migration WHERE number = 1)
    BEGIN
        EXEC (N'
-- The ledger: which document each line was written from, for ever (never purged). It serves idempotency, the guard against
-- older results and lost acknowledgements. The row hashes are of the rows as they were written, and
-- show later edits. A failure mark and an adopted row have none (docs/requirements.md R54).
-- Keys and hashes are the bytes of a SHA-256, in the order of its hex text.
CREATE TABLE sqlwriter.ledger (
    detail_id bigint NOT NULL,
    version_us bigint NOT NULL,
    document_key binary(32) NOT NULL,
    document_id nvarchar(1023) NOT NULL,
    source_ts bigint NOT NULL,
    content_hash binary(32) NULL,
    hash_version int NULL,
    sys_name nvarchar(256) COLLATE Latin1_General_BIN2 NOT NULL,
    detail_row_hash binary(32) NULL,
    tracking_row_hash binary(32) NULL,
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
-- The audit log: one entry for each action of an operator and each step of a run, never changed. detail is JSON.
-- All times are UTC by the database''s clock. db_login is who was connected, done_by who it was done for.
CREATE TABLE sqlwriter.audit_log (
    audit_id bigint IDENTITY (1, 1) NOT NULL,
    done_at datetime2(3) NOT NULL CONSTRAINT df_audit_log_done DEFAULT SYSUTCDATETIME(),
    db_login nvarchar(256) NOT NULL CONSTRAINT df_audit_log_login DEFAULT ORIGINAL_LOGIN(),
    sys_name nvarchar(256) COLLATE Latin1_General_BIN2 NOT NULL,
    level varchar(10) COLLATE Latin1_General_BIN2 NULL,
    action nvarchar(40) COLLATE Latin1_General_BIN2 NOT NULL,
    done_by nvarchar(256) NOT NULL,
    why nvarchar(2000) NOT NULL,
    subject nvarchar(1023) NOT NULL,
    run_id varchar(64) COLLATE Latin1_General_BIN2 NULL,
    batch_id varchar(64) COLLATE Latin1_General_BIN2 NULL,
    detail nvarchar(max) NULL,
    CONSTRAINT pk_audit_log PRIMARY KEY (audit_id)
);
-- A purge and the list of a run read entries by time, the list of an action by the second index. Other lists read from
-- the log''s end: only runs add many entries, three for each batch. No index has subject, because a document''s id may be
-- longer than a key of an index.
CREATE INDEX ix_audit_log_done ON sqlwriter.audit_log (sys_name, done_at);
CREATE INDEX ix_audit_log_action ON sqlwriter.audit_log (sys_name, action, audit_id);
-- Adds an entry, which gets the server''s time and login. The app has no right to insert into the table itself.
-- A text that is too long is refused by the table: a narrow parameter would cut it in silence.
EXEC (N''CREATE PROCEDURE sqlwriter.audit_add
    @sys_name nvarchar(max), @action nvarchar(max), @by nvarchar(max), @why nvarchar(max), @subject nvarchar(max),
    @detail nvarchar(max), @level varchar(max), @run varchar(max), @batch varchar(max)
AS
BEGIN
    INSERT INTO sqlwriter.audit_log (sys_name, action, done_by, why, subject, detail, level, run_id, batch_id)
    VALUES (
        @sys_name, @action, @by, @why, @subject, NULLIF(@detail, N''''''''),
        NULLIF(@level, ''''''''), NULLIF(@run, ''''''''), NULLIF(@batch, '''''''')
    );
END;'');
-- For how many days an environment''s audit log is kept: without a row for ever. Only an administrator writes it
-- (deploy/sql/audit_retention.sql), and the purge obeys it, whatever the app asks for.
CREATE TABLE sqlwriter.audit_retention (
    sys_name nvarchar(256) COLLATE Latin1_General_BIN2 NOT NULL,
    kept_days int NOT NULL,
    CONSTRAINT pk_audit_retention PRIMARY KEY (sys_name),
    CONSTRAINT ck_audit_retention_kept CHECK (kept_days >= 365)
);
-- Runs (internal/run). run is one row from request to receipt, batch one batch of a run, batch_item one of its
-- documents, worker one working invocation, error_detail one failure of a document. internal/run/states.go has the
-- states and their changes.
-- All times are UTC by the database''s clock. filter and outcomes are JSON; a completed batch has outcomes, its
-- documents by outcome. heartbeat_at is the last sign of life.
-- Statuses and kinds are not checked, because a later build may have more.
-- There are no foreign keys, because guarded statements alone add and change rows.
-- Keys and statuses are compared byte by byte under any collation of the database.
CREATE TABLE sqlwriter.run (
    run_id varchar(64) COLLATE Latin1_General_BIN2 NOT NULL,
    run_number bigint IDENTITY (1, 1) NOT NULL,
    sys_name nvarchar(256) COLLATE Latin1_General_BIN2 NOT NULL,
    kind nvarchar(40) COLLATE Latin1_General_BIN2 NOT NULL,
    filter nvarchar(max) NULL,
    named_count int NOT NULL CONSTRAINT df_run_named DEFAULT 0,
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
    owner varchar(64) COLLATE Latin1_General_BIN2 NULL,
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
CREATE TABLE sqlwriter.batch (
    batch_id varchar(64) COLLATE Latin1_General_BIN2 NOT NULL,
    serial_number bigint IDENTITY (1, 1) NOT NULL,
    run_id varchar(64) COLLATE Latin1_General_BIN2 NOT NULL,
    number int NOT NULL,
    status varchar(20) COLLATE Latin1_General_BIN2 NOT NULL,
    attempt int NOT NULL,
    queue_attempt_count int NOT NULL CONSTRAINT df_batch_queue_attempt_count DEFAULT 0,
    lost_workers int NOT NULL CONSTRAINT df_batch_lost_workers DEFAULT 0,
    last_queue_error nvarchar(2000) NULL,
    error nvarchar(2000) NULL,
    owner varchar(64) COLLATE Latin1_General_BIN2 NULL,
    epoch int NOT NULL CONSTRAINT df_batch_epoch DEFAULT 0,
    heartbeat_at datetime2(3) NULL,
    queued_at datetime2(3) NULL,
    claimed_at datetime2(3) NULL,
    process_start_time datetime2(3) NULL,
    process_end_time datetime2(3) NULL,
    created_at datetime2(3) NOT NULL,
    updated_at datetime2(3) NOT NULL,
    total_count int NOT NULL,
    success_count int NOT NULL CONSTRAINT df_batch_success_count DEFAULT 0,
    failure_count int NOT NULL CONSTRAINT df_batch_failure_count DEFAULT 0,
    outcomes nvarchar(1000) COLLATE Latin1_General_BIN2 NULL,
    CONSTRAINT pk_batch PRIMARY KEY (batch_id),
    CONSTRAINT uq_batch_serial UNIQUE (serial_number),
    CONSTRAINT uq_batch_number UNIQUE (run_id, number)
);
-- The timer reads batches by status over all runs. Statements about one run name all statuses, so each is a range of
-- this index. Only this index changes with every status. Lists of an operator without a status use the unique
-- (run_id, number).
CREATE INDEX ix_batch_status ON sqlwriter.batch (status, run_id, number);
-- Reports read the last days. created_at never changes; the end time changes when a batch ends or is requeued.
CREATE INDEX ix_batch_created ON sqlwriter.batch (created_at);
CREATE INDEX ix_batch_ended ON sqlwriter.batch (process_end_time);
CREATE TABLE sqlwriter.batch_item (
    run_id varchar(64) COLLATE Latin1_General_BIN2 NOT NULL,
    document_key binary(32) NOT NULL,
    document_id nvarchar(1023) NOT NULL,
    batch_id varchar(64) COLLATE Latin1_General_BIN2 NOT NULL,
    position int NOT NULL,
    outcome varchar(20) COLLATE Latin1_General_BIN2 NULL,
    code nvarchar(256) NULL,
    updated_at datetime2(3) NULL,
    CONSTRAINT pk_batch_item PRIMARY KEY (run_id, document_key)
);
-- A worker reads the documents of its batch in their order, and counts them by outcome.
CREATE INDEX ix_batch_item_batch ON sqlwriter.batch_item (batch_id, position) INCLUDE (outcome);
CREATE TABLE sqlwriter.worker (
    worker_id varchar(64) COLLATE Latin1_General_BIN2 NOT NULL,
    kind nvarchar(40) COLLATE Latin1_General_BIN2 NOT NULL,
    instance nvarchar(256) NOT NULL,
    status varchar(20) COLLATE Latin1_General_BIN2 NOT NULL,
    run_id varchar(64) COLLATE Latin1_General_BIN2 NOT NULL,
    batch_id varchar(64) COLLATE Latin1_General_BIN2 NULL,
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
    run_id varchar(64) COLLATE Latin1_General_BIN2 NOT NULL,
    batch_id varchar(64) COLLATE Latin1_General_BIN2 NOT NULL,
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
CREATE INDEX ix_error_detail_batch ON sqlwriter.error_detail (batch_id, error_id);
-- Reports read an environment''s latest rows, and a purge reads its oldest.
CREATE INDEX ix_error_detail_created ON sqlwriter.error_detail (sys_name, created_at);
-- The batches under the names of the original queries (docs/requirements.md R86). A view needs a batch of its own.
EXEC (N''CREATE VIEW sqlwriter.processing_job AS
SELECT
    t.run_id, t.run_id AS parent_job_id, t.batch_id, t.batch_id AS job_id, t.number AS batch_number,
    t.status AS batch_status, t.status, t.queue_attempt_count, t.last_queue_error, t.created_at, t.updated_at,
    t.queued_at, t.process_start_time, t.process_start_time AS started_at, t.process_end_time, t.process_end_time AS completed_at,
    t.heartbeat_at AS last_heartbeat, t.total_count, t.success_count, t.failure_count, t.error AS error_message
FROM sqlwriter.batch AS t;'');
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
-- The installed sets of procedures, one for each build and settings file. A set''s hash ends the names of its
-- procedures; inputs lists everything that it depends on. used_on is the day on which a build last started with it, in
-- UTC. A stopped build may need its set, so only `migrate prune` drops one, by that day.
-- A login with rights on the procedures of sqlwriter_preview alone can read verdicts and write nothing.
CREATE TABLE sqlwriter.procedure_set (
    set_hash varchar(12) COLLATE Latin1_General_BIN2 NOT NULL,
    inputs nvarchar(max) NOT NULL,
    installed_at datetime2(3) NOT NULL DEFAULT SYSUTCDATETIME(),
    installed_by nvarchar(256) NOT NULL DEFAULT SUSER_SNAME(),
    used_on date NOT NULL DEFAULT CAST(SYSUTCDATETIME() AS date),
    CONSTRAINT pk_procedure_set PRIMARY KEY (set_hash)
);
IF SCHEMA_ID(N''sqlwriter_preview'') IS NULL
    EXEC (N''CREATE SCHEMA sqlwriter_preview AUTHORIZATION dbo'');
-- What a comparison of SQL with the documents found (internal/reconcile): one row for each finding. One that is no
-- longer true is deleted. document_key is the SHA-256 of document_id. What a first look saw is a suspect, until a
-- second one sees it with the same mark: then it is sure.
-- All times are UTC by the database''s clock. Classes are not checked, because a later build may have more.
-- Keys are compared byte by byte under any collation of the database.
CREATE TABLE sqlwriter.finding (
    sys_name nvarchar(256) COLLATE Latin1_General_BIN2 NOT NULL,
    class varchar(40) COLLATE Latin1_General_BIN2 NOT NULL,
    detail_id bigint NOT NULL,
    document_key binary(32) NOT NULL,
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
-- A purge reads the environment''s oldest rows (retention.Store). It is the only one that deletes rows of these
-- tables, by a procedure: the app has no right to.
CREATE INDEX ix_run_ended ON sqlwriter.run (sys_name, ended_at) INCLUDE (status);
CREATE INDEX ix_comparison_ended ON sqlwriter.comparison (sys_name, ended_at);
-- One row for each mapping that a migration chose. columns has its lines as JSON, which tell for a ledger row of that
-- hash_version what was written. The one that was chosen last is in use.
CREATE TABLE sqlwriter.mapping (
    version int NOT NULL,
    columns nvarchar(max) NOT NULL CHECK (ISJSON(columns) = 1),
    chosen_at datetime2(7) NOT NULL DEFAULT SYSUTCDATETIME(),
    chosen_by nvarchar(256) NOT NULL DEFAULT SUSER_SNAME(),
    CONSTRAINT pk_mapping PRIMARY KEY (version)
);
');
        INSERT INTO sqlwriter.migration (number, name, checksum)
        VALUES (1, N'0001_schema', 'cd1cb9af240781db61924f04a83262a7781dd4e4bf3b826103471a4f37bf8cb5');
    END;
GO
