-- Runs (internal/run). run is one row from request to receipt, job one batch of a run, batch_item one of its documents,
-- worker one working invocation, error_detail one failure of a document. internal/run/states.go has the states and
-- their changes.
-- All times are UTC by the database's clock. filter and outcomes are JSON; a completed batch has outcomes, its
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
    kind varchar(20) COLLATE Latin1_General_BIN2 NOT NULL CONSTRAINT df_job_kind DEFAULT 'batch',
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
-- entity_id is the main line's id, NULL when the document names none.
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
-- Reports read an environment's latest rows, and a purge reads its oldest.
CREATE INDEX ix_error_detail_created ON sqlwriter.error_detail (sys_name, created_at);
-- The batches under the names of the monitoring queries (docs/requirements.md R86). A view needs a batch of its own.
EXEC (N'CREATE VIEW sqlwriter.batch AS
SELECT
    j.run_id, j.job_id AS batch_id, j.number AS batch_number, j.status AS batch_status, j.queue_attempt_count,
    j.last_queue_error, j.queued_at, j.created_at, j.updated_at, j.process_start_time, j.process_end_time, j.total_count,
    j.success_count, j.failure_count, j.run_id AS parent_job_id
FROM sqlwriter.job AS j;');
-- The jobs under the names of docs/requirements.md R86.
EXEC (N'CREATE VIEW sqlwriter.processing_job AS
SELECT
    j.job_id, j.status, j.process_start_time AS started_at, j.process_end_time AS completed_at, j.error AS error_message,
    j.heartbeat_at AS last_heartbeat
FROM sqlwriter.job AS j;');
