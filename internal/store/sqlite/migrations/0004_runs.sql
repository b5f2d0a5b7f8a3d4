-- Runs (internal/run). run is one row from request to receipt, job one batch of a run, batch_item one of its documents,
-- worker one working invocation, error_detail one failure of a document. internal/run/states.go has the states and
-- their changes.
-- All times are UTC by the database's clock. filter and outcomes are JSON; a completed batch has outcomes, its
-- documents by outcome. heartbeat_at is the last sign of life.
-- Statuses and kinds are not checked, because a later build may have more.
-- There are no foreign keys, because guarded statements alone add and change rows.
CREATE TABLE sqlwriter_run (
    run_number INTEGER PRIMARY KEY,
    run_id TEXT NOT NULL UNIQUE,
    sys_name TEXT NOT NULL,
    kind TEXT NOT NULL,
    filter TEXT CHECK (json_valid(filter)),
    named_count INTEGER NOT NULL DEFAULT 0,
    pattern TEXT NOT NULL,
    rate_per_minute INTEGER NOT NULL DEFAULT 0,
    document_limit INTEGER NOT NULL DEFAULT 0,
    matched_count INTEGER NOT NULL DEFAULT 0,
    at_least INTEGER NOT NULL DEFAULT 0 CHECK (at_least IN (0, 1)),
    requested_by TEXT NOT NULL,
    why TEXT NOT NULL,
    status TEXT NOT NULL,
    cancel INTEGER NOT NULL CHECK (cancel IN (0, 1)),
    error TEXT,
    watermark TEXT,
    documents INTEGER NOT NULL DEFAULT 0,
    batches INTEGER NOT NULL DEFAULT 0,
    owner TEXT,
    epoch INTEGER NOT NULL DEFAULT 0,
    lost_managers INTEGER NOT NULL DEFAULT 0,
    started_at TEXT NOT NULL,
    handed_off_at TEXT,
    ended_at TEXT,
    heartbeat_at TEXT NOT NULL,
    next_at TEXT
);
-- The timer reads the running runs, oldest first, and the table only grows.
CREATE INDEX sqlwriter_ix_run_status ON sqlwriter_run (status, run_number);
CREATE TABLE sqlwriter_job (
    job_number INTEGER PRIMARY KEY,
    job_id TEXT NOT NULL UNIQUE CHECK (length(job_id) = 64),
    kind TEXT NOT NULL DEFAULT 'batch',
    run_id TEXT NOT NULL,
    number INTEGER NOT NULL,
    status TEXT NOT NULL,
    attempt INTEGER NOT NULL,
    queue_attempt_count INTEGER NOT NULL DEFAULT 0,
    lost_workers INTEGER NOT NULL DEFAULT 0,
    last_queue_error TEXT,
    error TEXT,
    owner TEXT,
    epoch INTEGER NOT NULL DEFAULT 0,
    heartbeat_at TEXT,
    queued_at TEXT,
    claimed_at TEXT,
    process_start_time TEXT,
    process_end_time TEXT,
    created_at TEXT NOT NULL,
    updated_at TEXT NOT NULL,
    total_count INTEGER NOT NULL,
    success_count INTEGER NOT NULL DEFAULT 0,
    failure_count INTEGER NOT NULL DEFAULT 0,
    outcomes TEXT CHECK (json_valid(outcomes)),
    UNIQUE (run_id, number)
);
-- The timer reads batches by status over all runs. Statements about one run name all statuses, so each is a range of
-- this index. Only this index changes with every status. Lists of an operator without a status use the unique
-- (run_id, number).
CREATE INDEX sqlwriter_ix_job_status ON sqlwriter_job (status, run_id, number);
-- Reports read the last days. created_at never changes; the end time changes when a batch ends or is requeued.
CREATE INDEX sqlwriter_ix_job_created ON sqlwriter_job (created_at);
CREATE INDEX sqlwriter_ix_job_ended ON sqlwriter_job (process_end_time);
CREATE TABLE sqlwriter_batch_item (
    run_id TEXT NOT NULL,
    document_key TEXT NOT NULL CHECK (length(document_key) = 64),
    document_id TEXT NOT NULL,
    job_id TEXT NOT NULL,
    position INTEGER NOT NULL,
    outcome TEXT,
    code TEXT,
    updated_at TEXT,
    PRIMARY KEY (run_id, document_key)
) WITHOUT ROWID;
-- A worker reads the documents of its batch in their order, and counts them by outcome.
CREATE INDEX sqlwriter_ix_batch_item_job ON sqlwriter_batch_item (job_id, position, outcome);
CREATE TABLE sqlwriter_worker (
    worker_id TEXT NOT NULL PRIMARY KEY,
    kind TEXT NOT NULL,
    instance TEXT NOT NULL,
    status TEXT NOT NULL,
    run_id TEXT NOT NULL,
    job_id TEXT,
    documents_processed INTEGER NOT NULL DEFAULT 0,
    started_at TEXT NOT NULL,
    completed_at TEXT,
    heartbeat_at TEXT NOT NULL
);
-- The timer reads the running workers among all that there were. The heartbeat changes too often for an index.
CREATE INDEX sqlwriter_ix_worker_status ON sqlwriter_worker (status, run_id);
-- Reports read ended workers by their start, which never changes.
CREATE INDEX sqlwriter_ix_worker_started ON sqlwriter_worker (started_at);
-- entity_id is the main line's id, NULL when the document names none.
CREATE TABLE sqlwriter_error_detail (
    error_id INTEGER PRIMARY KEY,
    sys_name TEXT NOT NULL,
    run_id TEXT NOT NULL,
    job_id TEXT NOT NULL,
    document_id TEXT NOT NULL,
    entity_id INTEGER,
    error_code TEXT NOT NULL,
    error_message TEXT NOT NULL,
    error_type TEXT NOT NULL,
    retry_count INTEGER NOT NULL,
    is_retryable INTEGER NOT NULL CHECK (is_retryable IN (0, 1)),
    created_at TEXT NOT NULL
);
-- A batch is shown with its latest details.
CREATE INDEX sqlwriter_ix_error_detail_job ON sqlwriter_error_detail (job_id, error_id);
-- Reports read an environment's latest rows, and a purge reads its oldest.
CREATE INDEX sqlwriter_ix_error_detail_created ON sqlwriter_error_detail (sys_name, created_at);
-- The batches under the names of the monitoring queries (docs/requirements.md R86).
CREATE VIEW sqlwriter_batch AS
SELECT
    j.run_id, j.job_id AS batch_id, j.number AS batch_number, j.status AS batch_status, j.queue_attempt_count,
    j.last_queue_error, j.queued_at, j.created_at, j.updated_at, j.process_start_time, j.process_end_time, j.total_count,
    j.success_count, j.failure_count, j.run_id AS parent_job_id
FROM sqlwriter_job AS j;
-- The jobs under the names of docs/requirements.md R86.
CREATE VIEW sqlwriter_processing_job AS
SELECT
    j.job_id, j.status, j.process_start_time AS started_at, j.process_end_time AS completed_at, j.error AS error_message,
    j.heartbeat_at AS last_heartbeat
FROM sqlwriter_job AS j;
