-- The ledger: which document each line was written from, for ever (never purged). It serves idempotency, the guard against
-- older results and lost acknowledgements. The row hashes are of the rows as they were written, and
-- show later edits. A failure mark and an adopted row have none (docs/requirements.md R54).
-- Keys and hashes are the bytes of a SHA-256, in the order of its hex text.
CREATE TABLE sqlwriter_ledger (
    detail_id INTEGER PRIMARY KEY,
    version_us INTEGER NOT NULL,
    document_key BLOB NOT NULL CHECK (length(document_key) = 32),
    document_id TEXT NOT NULL,
    source_ts INTEGER NOT NULL,
    content_hash BLOB,
    hash_version INTEGER,
    sys_name TEXT NOT NULL,
    detail_row_hash BLOB,
    tracking_row_hash BLOB,
    outcome TEXT NOT NULL CHECK (outcome IN ('applied', 'failed', 'adopted')),
    write_id TEXT NOT NULL,
    applied_at TEXT NOT NULL,
    CHECK ((outcome = 'failed') = (content_hash IS NULL)),
    CHECK ((content_hash IS NULL) = (hash_version IS NULL))
);
-- The state of the adoption of a database with history (internal/adopt), in at most one row. counts has the counts of
-- the run as JSON; adopted and marked are counted here.
CREATE TABLE sqlwriter_adoption (
    id INTEGER PRIMARY KEY CHECK (id = 1),
    phase TEXT NOT NULL CHECK (phase IN ('running', 'done', 'empty')),
    run_id TEXT NOT NULL,
    watermark INTEGER NOT NULL,
    counts TEXT NOT NULL CHECK (json_valid(counts)),
    adopted INTEGER NOT NULL DEFAULT 0,
    marked INTEGER NOT NULL DEFAULT 0,
    who TEXT NOT NULL,
    started_at TEXT NOT NULL,
    finished_at TEXT
);
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
    batch_id TEXT,
    detail TEXT CHECK (json_valid(detail))
);
-- A purge and the list of a run read entries by time, the list of an action by the second index. Other lists read from
-- the log's end: only runs add many entries, three for each batch. No index has subject, because a document's id may be
-- longer than a key of an index.
CREATE INDEX sqlwriter_ix_audit_log_done ON sqlwriter_audit_log (sys_name, done_at);
CREATE INDEX sqlwriter_ix_audit_log_action ON sqlwriter_audit_log (sys_name, action, audit_id);
-- For how many days an environment's audit log is kept: without a row for ever. The app only reads it.
CREATE TABLE sqlwriter_audit_retention (
    sys_name TEXT PRIMARY KEY NOT NULL,
    kept_days INTEGER NOT NULL CHECK (kept_days >= 365)
);
-- Runs (internal/run). run is one row from request to receipt, batch one batch of a run, batch_item one of its
-- documents, worker one working invocation, error_detail one failure of a document. internal/run/states.go has the
-- states and their changes.
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
CREATE TABLE sqlwriter_batch (
    serial_number INTEGER PRIMARY KEY,
    batch_id TEXT NOT NULL UNIQUE,
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
CREATE INDEX sqlwriter_ix_batch_status ON sqlwriter_batch (status, run_id, number);
-- Reports read the last days. created_at never changes; the end time changes when a batch ends or is requeued.
CREATE INDEX sqlwriter_ix_batch_created ON sqlwriter_batch (created_at);
CREATE INDEX sqlwriter_ix_batch_ended ON sqlwriter_batch (process_end_time);
CREATE TABLE sqlwriter_batch_item (
    run_id TEXT NOT NULL,
    document_key BLOB NOT NULL CHECK (length(document_key) = 32),
    document_id TEXT NOT NULL,
    batch_id TEXT NOT NULL,
    position INTEGER NOT NULL,
    outcome TEXT,
    code TEXT,
    updated_at TEXT,
    PRIMARY KEY (run_id, document_key)
) WITHOUT ROWID;
-- A worker reads the documents of its batch in their order, and counts them by outcome.
CREATE INDEX sqlwriter_ix_batch_item_batch ON sqlwriter_batch_item (batch_id, position, outcome);
CREATE TABLE sqlwriter_worker (
    worker_id TEXT NOT NULL PRIMARY KEY,
    kind TEXT NOT NULL,
    instance TEXT NOT NULL,
    status TEXT NOT NULL,
    run_id TEXT NOT NULL,
    batch_id TEXT,
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
    batch_id TEXT NOT NULL,
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
CREATE INDEX sqlwriter_ix_error_detail_batch ON sqlwriter_error_detail (batch_id, error_id);
-- Reports read an environment's latest rows, and a purge reads its oldest.
CREATE INDEX sqlwriter_ix_error_detail_created ON sqlwriter_error_detail (sys_name, created_at);
-- The batches under the names of the original queries (docs/requirements.md R86).
CREATE VIEW sqlwriter_processing_job AS
SELECT
    t.run_id, t.run_id AS parent_job_id, t.batch_id, t.batch_id AS job_id, t.number AS batch_number,
    t.status AS batch_status, t.status, t.queue_attempt_count, t.last_queue_error, t.created_at, t.updated_at,
    t.queued_at, t.process_start_time, t.process_start_time AS started_at, t.process_end_time, t.process_end_time AS completed_at,
    t.heartbeat_at AS last_heartbeat, t.total_count, t.success_count, t.failure_count, t.error AS error_message
FROM sqlwriter_batch AS t;
-- The heartbeat: one row for each environment. Committing a higher number shows that the database takes writes.
-- database_id is made with the row and tells databases apart. raised_at is UTC by the database's clock.
CREATE TABLE sqlwriter_heartbeat (
    sys_name TEXT NOT NULL PRIMARY KEY,
    database_id TEXT NOT NULL,
    number INTEGER NOT NULL,
    raised_at TEXT NOT NULL
);
-- What a comparison of SQL with the documents found (internal/reconcile): one row for each finding. One that is no
-- longer true is deleted. document_key is the SHA-256 of document_id. What a first look saw is a suspect, until a
-- second one sees it with the same mark: then it is sure.
-- All times are UTC by the database's clock. Classes are not checked, because a later build may have more.
CREATE TABLE sqlwriter_finding (
    sys_name TEXT NOT NULL,
    class TEXT NOT NULL,
    detail_id INTEGER NOT NULL,
    document_key BLOB NOT NULL CHECK (length(document_key) = 32),
    document_id TEXT NOT NULL,
    first_seen TEXT NOT NULL,
    last_seen TEXT NOT NULL,
    mark TEXT NOT NULL,
    sure INTEGER NOT NULL,
    detail TEXT NOT NULL,
    mends INTEGER NOT NULL,
    PRIMARY KEY (sys_name, class, detail_id, document_key)
) WITHOUT ROWID;
-- One row for each comparison. request has the documents that it names, as JSON, until it has ended. step counts what
-- was saved: only whoever read it before may save the next one.
CREATE TABLE sqlwriter_comparison (
    sys_name TEXT NOT NULL,
    comparison_id TEXT NOT NULL,
    request TEXT NOT NULL CHECK (json_valid(request)),
    named INTEGER NOT NULL,
    night INTEGER NOT NULL,
    requested_by TEXT NOT NULL,
    why TEXT NOT NULL,
    step INTEGER NOT NULL,
    position TEXT NOT NULL,
    counts TEXT NOT NULL CHECK (json_valid(counts)),
    error TEXT,
    begun_at TEXT NOT NULL,
    moved_at TEXT NOT NULL,
    ended_at TEXT,
    PRIMARY KEY (sys_name, comparison_id)
) WITHOUT ROWID;
-- The first of those that go on, and the last that ended, by their begin.
CREATE INDEX sqlwriter_ix_comparison_begun ON sqlwriter_comparison (sys_name, begun_at, comparison_id);
-- A purge reads the environment's oldest rows (retention.Store). Nothing else deletes rows of these tables.
-- Two indexes begin with the time: one that began with the environment would be taken for lists of its latest rows,
-- and all of them would be sorted.
CREATE INDEX sqlwriter_ix_run_ended ON sqlwriter_run (ended_at, sys_name);
CREATE INDEX sqlwriter_ix_comparison_ended ON sqlwriter_comparison (ended_at, sys_name);
-- One row for each mapping that a migration chose. columns has its lines as JSON, which tell for a ledger row of that
-- hash_version what was written. The one that was chosen last is in use.
CREATE TABLE sqlwriter_mapping (
    version INTEGER PRIMARY KEY,
    columns TEXT NOT NULL,
    chosen_at TEXT NOT NULL
);
