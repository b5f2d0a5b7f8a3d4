-- audit_add
DECLARE @sys_name nvarchar(256);
DECLARE @action nvarchar(40);
DECLARE @by nvarchar(256);
DECLARE @why nvarchar(2000);
DECLARE @subject nvarchar(1023);
DECLARE @detail nvarchar(max);
DECLARE @level varchar(20);
DECLARE @run nvarchar(64);
DECLARE @job varchar(64);
-- One entry more in the audit log, by the database's clock.
SET XACT_ABORT ON;
SET LOCK_TIMEOUT 5000;
INSERT INTO sqlwriter.audit_log (done_at, sys_name, action, done_by, why, subject, detail, level, run_id, job_id)
VALUES (
    SYSUTCDATETIME(), @sys_name, @action, @by, @why, @subject, NULLIF(@detail, ''),
    NULLIF(@level, ''), NULLIF(@run, ''), NULLIF(@job, '')
);
GO
-- details_insert
DECLARE @run nvarchar(64);
DECLARE @job varchar(64);
DECLARE @rows nvarchar(max);
-- Failures of documents in a batch. A row of @rows is an array: position, document, code, message, type, retries, whether
-- there is a next one.
SET XACT_ABORT ON;
SET LOCK_TIMEOUT 5000;
INSERT INTO sqlwriter.error_detail (
    run_id, job_id, document_id, error_code, error_message, error_type, retry_count, is_retryable, created_at
)
SELECT
    @run, @job, n.listed_document, n.listed_code, n.listed_message, n.listed_type, n.listed_retries, n.listed_retryable,
    SYSUTCDATETIME()
FROM
    OPENJSON (@rows) WITH (
        listed_position int '$[0]',
        listed_document nvarchar(1023) '$[1]',
        listed_code nvarchar(256) '$[2]',
        listed_message nvarchar(2000) '$[3]',
        listed_type varchar(20) '$[4]',
        listed_retries int '$[5]',
        listed_retryable bit '$[6]'
    ) AS n
ORDER BY n.listed_position;
GO
-- items_count
DECLARE @job varchar(64);
-- How many documents of a batch have which outcome.
SELECT
    i.outcome, COUNT(*) AS documents
FROM sqlwriter.batch_item AS i
WHERE i.job_id = @job
GROUP BY i.outcome;
GO
-- items_insert
DECLARE @run nvarchar(64);
DECLARE @rows nvarchar(max);
-- Documents of batches. A document that the run has already is an error. A row of @rows is an array: key, id, batch,
-- position.
SET XACT_ABORT ON;
SET LOCK_TIMEOUT 5000;
INSERT INTO sqlwriter.batch_item (run_id, document_key, document_id, job_id, position)
SELECT @run, n.listed_key, n.listed_document, n.listed_job, n.listed_position
FROM
    OPENJSON (@rows) WITH (
        listed_key char(64) '$[0]',
        listed_document nvarchar(1023) '$[1]',
        listed_job char(64) '$[2]',
        listed_position int '$[3]'
    ) AS n
ORDER BY n.listed_key;
GO
-- items_known
DECLARE @rows nvarchar(max);
DECLARE @run nvarchar(64);
-- Which documents the run has. A row of @rows is an array: key.
SELECT i.document_key
FROM
    OPENJSON (@rows) WITH (
        listed_key char(64) '$[0]'
    ) AS n
CROSS JOIN sqlwriter.batch_item AS i
WHERE i.run_id = @run AND i.document_key = n.listed_key COLLATE Latin1_General_BIN2
OPTION (LOOP JOIN, FORCE ORDER);
GO
-- items_open
DECLARE @job varchar(64);
-- The documents of a batch that have no outcome, in their order.
SELECT i.document_id FROM sqlwriter.batch_item AS i WHERE i.job_id = @job AND i.outcome IS NULL ORDER BY i.position;
GO
-- items_page
DECLARE @limit bigint;
DECLARE @run nvarchar(64);
DECLARE @after varchar(64);
-- Documents of a run by key, from one on.
SELECT TOP (@limit)
    i.document_id, i.outcome, i.code, j.number
FROM sqlwriter.batch_item AS i
INNER JOIN sqlwriter.job AS j ON j.job_id = i.job_id
WHERE
    i.run_id = @run AND i.document_key > @after
ORDER BY i.document_key;
GO
-- items_page_by_outcome
DECLARE @limit bigint;
DECLARE @run nvarchar(64);
DECLARE @after varchar(64);
DECLARE @rows nvarchar(max);
-- Documents of a run by key, from one on, those with one of some outcomes. A row of @rows is an array:
-- outcome.
SELECT TOP (@limit)
    i.document_id, i.outcome, i.code, j.number
FROM sqlwriter.batch_item AS i
INNER JOIN sqlwriter.job AS j ON j.job_id = i.job_id
WHERE
    i.run_id = @run AND i.document_key > @after
    AND i.outcome IN (SELECT n.listed_outcome FROM OPENJSON (@rows) WITH (
        listed_outcome varchar(20) '$[0]'
    ) AS n)
ORDER BY i.document_key;
GO
-- items_save
DECLARE @rows nvarchar(max);
DECLARE @job varchar(64);
-- The outcomes of documents of a batch, over those that they have. A row of @rows is an array: key, run, outcome, code.
SET XACT_ABORT ON;
SET LOCK_TIMEOUT 5000;
UPDATE i
SET outcome = n.listed_outcome, code = n.listed_code, updated_at = SYSUTCDATETIME()
FROM
    OPENJSON (@rows) WITH (
        listed_key char(64) '$[0]',
        listed_run nvarchar(64) '$[1]',
        listed_outcome varchar(20) '$[2]',
        listed_code nvarchar(256) '$[3]'
    ) AS n
CROSS JOIN sqlwriter.batch_item AS i
WHERE
    i.run_id = n.listed_run COLLATE Latin1_General_BIN2 AND i.document_key = n.listed_key COLLATE Latin1_General_BIN2
    AND i.job_id = @job
OPTION (LOOP JOIN, FORCE ORDER);
GO
-- job_beat
DECLARE @job varchar(64);
DECLARE @owner nvarchar(64);
DECLARE @epoch bigint;
-- The worker lives, as long as the batch is its own.
SET XACT_ABORT ON;
SET LOCK_TIMEOUT 5000;
UPDATE sqlwriter.job
SET heartbeat_at = SYSUTCDATETIME()
WHERE job_id = @job AND owner = @owner AND epoch = @epoch AND status = 'processing';
GO
-- job_claim
DECLARE @owner nvarchar(64);
DECLARE @shown bigint;
DECLARE @job varchar(64);
DECLARE @epoch bigint;
DECLARE @attempt bigint;
DECLARE @stale bigint;
-- Gives a batch to a worker: one that nobody has, whose worker let go of it (its epoch is @shown), or has said nothing for
-- @stale. Of all who try at the same time one changes the row: the epoch that they read is gone then. A worker that did not
-- let go is lost.
SET XACT_ABORT ON;
SET LOCK_TIMEOUT 5000;
UPDATE sqlwriter.job
SET
    status = 'processing', owner = @owner, epoch = epoch + 1,
    heartbeat_at = SYSUTCDATETIME(), claimed_at = SYSUTCDATETIME(), updated_at = SYSUTCDATETIME(),
    process_start_time = COALESCE(process_start_time, SYSUTCDATETIME()),
    lost_workers = lost_workers + CASE
        WHEN status = 'processing' AND owner IS NOT NULL AND epoch <> @shown THEN 1
        ELSE 0
    END
WHERE
    job_id = @job AND epoch = @epoch AND attempt <= @attempt
    AND (
        status IN ('pending_queue', 'pending_retry', 'queued')
        OR (
            status = 'processing'
            AND (
                owner IS NULL OR epoch = @shown
                OR heartbeat_at <= CAST(DATEADD(MILLISECOND, -@stale, SYSUTCDATETIME()) AS datetime2(3))
            )
        )
    );
GO
-- job_dead
DECLARE @reason nvarchar(2000);
DECLARE @job varchar(64);
DECLARE @epoch bigint;
DECLARE @attempt bigint;
DECLARE @stale bigint;
-- Ends a batch whose message of @attempt is a dead letter, unless its worker lives or a later message is on its way.
SET XACT_ABORT ON;
SET LOCK_TIMEOUT 5000;
UPDATE sqlwriter.job
SET status = 'failed', error = @reason, process_end_time = SYSUTCDATETIME(), updated_at = SYSUTCDATETIME()
WHERE
    job_id = @job AND epoch = @epoch AND attempt <= @attempt
    AND (
        status IN ('pending_queue', 'pending_retry', 'queued')
        OR (
            status = 'processing'
            AND (owner IS NULL OR heartbeat_at <= CAST(DATEADD(MILLISECOND, -@stale, SYSUTCDATETIME()) AS datetime2(3)))
        )
    );
GO
-- job_details
DECLARE @limit bigint;
DECLARE @job varchar(64);
-- The latest error details of a batch, newest first.
SELECT TOP (@limit)
    e.document_id, e.error_code, e.error_message, e.error_type, e.retry_count, e.is_retryable, e.created_at
FROM sqlwriter.error_detail AS e
WHERE e.job_id = @job
ORDER BY e.error_id DESC;
GO
-- job_fail
DECLARE @reason nvarchar(2000);
DECLARE @job varchar(64);
DECLARE @owner nvarchar(64);
DECLARE @epoch bigint;
-- The worker gives its batch up.
SET XACT_ABORT ON;
SET LOCK_TIMEOUT 5000;
UPDATE sqlwriter.job
SET status = 'failed', error = @reason, process_end_time = SYSUTCDATETIME(), updated_at = SYSUTCDATETIME()
WHERE job_id = @job AND owner = @owner AND epoch = @epoch AND status = 'processing';
GO
-- job_finish
DECLARE @status varchar(20);
DECLARE @error nvarchar(2000);
DECLARE @success bigint;
DECLARE @failure bigint;
DECLARE @job varchar(64);
DECLARE @owner nvarchar(64);
DECLARE @epoch bigint;
-- Ends a batch by its numbers.
SET XACT_ABORT ON;
SET LOCK_TIMEOUT 5000;
UPDATE sqlwriter.job
SET
    status = @status, error = NULLIF(@error, ''), success_count = @success, failure_count = @failure,
    process_end_time = SYSUTCDATETIME(), updated_at = SYSUTCDATETIME()
WHERE job_id = @job AND owner = @owner AND epoch = @epoch AND status = 'processing';
GO
-- job_lease
DECLARE @job varchar(64);
DECLARE @owner nvarchar(64);
DECLARE @epoch bigint;
-- Keeps a batch that is its worker's from others until the transaction ends.
SET XACT_ABORT ON;
SET LOCK_TIMEOUT 5000;
UPDATE sqlwriter.job
SET updated_at = SYSUTCDATETIME()
WHERE job_id = @job AND owner = @owner AND epoch = @epoch AND status = 'processing';
GO
-- job_read
DECLARE @job varchar(64);
-- One batch.
SELECT
    j.job_id, j.run_id, j.number, j.status, j.attempt, j.queue_attempt_count, j.last_queue_error, j.error, j.owner, j.epoch,
    j.total_count, j.success_count, j.failure_count, j.created_at, j.queued_at, j.process_start_time, j.process_end_time,
    j.heartbeat_at, j.lost_workers
FROM sqlwriter.job AS j
WHERE j.job_id = @job;
GO
-- job_refused
DECLARE @reason nvarchar(2000);
DECLARE @given_up nvarchar(2000);
DECLARE @job varchar(64);
DECLARE @attempt bigint;
DECLARE @most bigint;
-- A batch whose message was refused once too often is failed.
SET XACT_ABORT ON;
SET LOCK_TIMEOUT 5000;
UPDATE sqlwriter.job
SET
    status = 'failed', attempt = attempt + 1, queue_attempt_count = queue_attempt_count + 1, last_queue_error = @reason,
    error = @given_up, process_end_time = SYSUTCDATETIME(), updated_at = SYSUTCDATETIME()
WHERE
    job_id = @job AND attempt = @attempt AND status IN ('pending_queue', 'pending_retry', 'queued')
    AND queue_attempt_count + 1 >= @most;
GO
-- job_release
DECLARE @job varchar(64);
DECLARE @owner nvarchar(64);
DECLARE @epoch bigint;
-- The worker lets go of its batch: updated_at is when.
SET XACT_ABORT ON;
SET LOCK_TIMEOUT 5000;
UPDATE sqlwriter.job
SET owner = NULL, heartbeat_at = NULL, updated_at = SYSUTCDATETIME()
WHERE job_id = @job AND owner = @owner AND epoch = @epoch AND status = 'processing';
GO
-- job_requeue
DECLARE @job varchar(64);
-- A failed batch is wanted again. Whoever still thinks that it has it has another epoch, and its next message another id.
SET XACT_ABORT ON;
SET LOCK_TIMEOUT 5000;
UPDATE sqlwriter.job
SET
    status = 'pending_retry', attempt = attempt + 1, epoch = epoch + 1, queue_attempt_count = 0, lost_workers = 0,
    last_queue_error = NULL, error = NULL, owner = NULL, heartbeat_at = NULL, process_end_time = NULL,
    updated_at = SYSUTCDATETIME()
WHERE job_id = @job AND status = 'failed';
GO
-- jobs_cancel
DECLARE @cancelled nvarchar(2000);
DECLARE @rows nvarchar(max);
-- Open batches of a run that was cancelled are failed. A row of @rows is an array: id.
SET XACT_ABORT ON;
SET LOCK_TIMEOUT 5000;
UPDATE j
SET status = 'failed', error = @cancelled, process_end_time = SYSUTCDATETIME(), updated_at = SYSUTCDATETIME()
FROM
    OPENJSON (@rows) WITH (
        listed_id char(64) '$[0]'
    ) AS n
CROSS JOIN sqlwriter.job AS j
WHERE
    j.job_id = n.listed_id COLLATE Latin1_General_BIN2
    AND j.status IN ('pending_queue', 'pending_retry', 'queued', 'processing')
OPTION (LOOP JOIN, FORCE ORDER);
GO
-- jobs_cancelled
DECLARE @run nvarchar(64);
DECLARE @cancelled nvarchar(2000);
-- The batches of a run that failed because it was cancelled.
SELECT j.job_id
FROM sqlwriter.job AS j
WHERE j.run_id = @run AND j.status = 'failed' AND j.error = @cancelled;
GO
-- jobs_count
DECLARE @rows nvarchar(max);
-- Counts the outcomes of batches that were given up. A row of @rows is an array: id.
SET XACT_ABORT ON;
SET LOCK_TIMEOUT 5000;
UPDATE j
SET
    success_count = (
        SELECT COUNT(*) FROM sqlwriter.batch_item AS i
        WHERE i.job_id = j.job_id AND i.outcome NOT IN ('deferred', 'failed')
    ),
    failure_count = (
        SELECT COUNT(*) FROM sqlwriter.batch_item AS i
        WHERE i.job_id = j.job_id AND i.outcome IN ('deferred', 'failed')
    )
FROM
    OPENJSON (@rows) WITH (
        listed_id char(64) '$[0]'
    ) AS n
CROSS JOIN sqlwriter.job AS j
WHERE
    j.job_id = n.listed_id COLLATE Latin1_General_BIN2
OPTION (LOOP JOIN, FORCE ORDER);
GO
-- jobs_cut
DECLARE @run nvarchar(64);
DECLARE @cancelled nvarchar(2000);
-- The batches of a run that failed because it was cancelled and that a worker had begun: the others have no outcomes.
SELECT j.job_id
FROM sqlwriter.job AS j
WHERE j.run_id = @run AND j.status = 'failed' AND j.error = @cancelled AND j.process_start_time IS NOT NULL;
GO
-- jobs_dead
DECLARE @limit bigint;
DECLARE @sys_name nvarchar(256);
DECLARE @stale bigint;
DECLARE @released bigint;
-- Batches whose worker has said nothing for @stale, or that were let go of for @released.
SELECT TOP (@limit)
    j.job_id, j.attempt
FROM sqlwriter.job AS j
INNER JOIN sqlwriter.run AS r ON r.run_id = j.run_id
WHERE
    j.status = 'processing' AND r.sys_name = @sys_name
    AND (
        (j.owner IS NOT NULL AND j.heartbeat_at <= CAST(DATEADD(MILLISECOND, -@stale, SYSUTCDATETIME()) AS datetime2(3)))
        OR (j.owner IS NULL AND j.updated_at <= CAST(DATEADD(MILLISECOND, -@released, SYSUTCDATETIME()) AS datetime2(3)))
    )
ORDER BY j.job_number;
GO
-- jobs_insert
DECLARE @run nvarchar(64);
DECLARE @status varchar(20);
DECLARE @attempt bigint;
DECLARE @rows nvarchar(max);
-- The batches of a chunk. A row of @rows is an array: id, number, documents.
SET XACT_ABORT ON;
SET LOCK_TIMEOUT 5000;
INSERT INTO sqlwriter.job (job_id, run_id, number, status, attempt, queued_at, created_at, updated_at, total_count)
SELECT
    n.listed_id, @run, n.listed_number, @status, @attempt, CASE WHEN @status = 'queued' THEN SYSUTCDATETIME() END,
    SYSUTCDATETIME(), SYSUTCDATETIME(), n.listed_total
FROM
    OPENJSON (@rows) WITH (
        listed_id char(64) '$[0]',
        listed_number int '$[1]',
        listed_total int '$[2]'
    ) AS n
ORDER BY n.listed_number;
GO
-- jobs_latest
DECLARE @limit bigint;
-- Batches, the latest first.
SELECT TOP (@limit)
    j.job_id, j.run_id, j.number, j.status, j.attempt, j.queue_attempt_count, j.last_queue_error, j.error, j.owner, j.epoch,
    j.total_count, j.success_count, j.failure_count, j.created_at, j.queued_at, j.process_start_time, j.process_end_time,
    j.heartbeat_at, j.lost_workers
FROM sqlwriter.job AS j
ORDER BY j.job_number DESC;
GO
-- jobs_latest_by_status
DECLARE @limit bigint;
DECLARE @status varchar(20);
-- Batches, the latest first, those with one status.
SELECT TOP (@limit)
    j.job_id, j.run_id, j.number, j.status, j.attempt, j.queue_attempt_count, j.last_queue_error, j.error, j.owner, j.epoch,
    j.total_count, j.success_count, j.failure_count, j.created_at, j.queued_at, j.process_start_time, j.process_end_time,
    j.heartbeat_at, j.lost_workers
FROM sqlwriter.job AS j
WHERE j.status = @status
ORDER BY j.job_number DESC;
GO
-- jobs_of_run
DECLARE @limit bigint;
DECLARE @run nvarchar(64);
-- Batches of a run by number.
SELECT TOP (@limit)
    j.job_id, j.run_id, j.number, j.status, j.attempt, j.queue_attempt_count, j.last_queue_error, j.error, j.owner, j.epoch,
    j.total_count, j.success_count, j.failure_count, j.created_at, j.queued_at, j.process_start_time, j.process_end_time,
    j.heartbeat_at, j.lost_workers
FROM sqlwriter.job AS j
WHERE j.run_id = @run
ORDER BY j.number;
GO
-- jobs_of_run_by_status
DECLARE @limit bigint;
DECLARE @run nvarchar(64);
DECLARE @status varchar(20);
-- Batches of a run by number, those with one status.
SELECT TOP (@limit)
    j.job_id, j.run_id, j.number, j.status, j.attempt, j.queue_attempt_count, j.last_queue_error, j.error, j.owner, j.epoch,
    j.total_count, j.success_count, j.failure_count, j.created_at, j.queued_at, j.process_start_time, j.process_end_time,
    j.heartbeat_at, j.lost_workers
FROM sqlwriter.job AS j
WHERE j.run_id = @run AND j.status = @status
ORDER BY j.number;
GO
-- jobs_on_the_way
DECLARE @sys_name nvarchar(256);
-- How many batches of the running runs of an environment are on their way, and how many of these runs have more to hand
-- off.
SELECT
    (
        SELECT COUNT(*)
        FROM sqlwriter.run AS r
        CROSS JOIN sqlwriter.job AS j
        WHERE
            r.status = 'running' AND r.sys_name = @sys_name AND j.run_id = r.run_id
            AND j.status IN ('queued', 'processing')
    ) AS busy,
    (
        SELECT COUNT(*)
        FROM sqlwriter.run AS r
        CROSS JOIN sqlwriter.job AS j
        WHERE r.status = 'running' AND r.sys_name = @sys_name AND j.run_id = r.run_id AND j.status = 'pending_retry'
    ) AS retries,
    (
        SELECT COUNT(*)
        FROM sqlwriter.run AS r
        WHERE
            r.status = 'running' AND r.sys_name = @sys_name AND r.pattern IS NOT NULL AND r.cancel = 0
            AND r.handed_off_at IS NULL
    ) AS handing_off;
GO
-- jobs_open
DECLARE @run nvarchar(64);
-- The open batches of a run.
SELECT j.job_id
FROM sqlwriter.job AS j
WHERE j.run_id = @run AND j.status IN ('pending_queue', 'pending_retry', 'queued', 'processing');
GO
-- jobs_queued
DECLARE @rows nvarchar(max);
-- Batches whose message was accepted. One that a worker has already, or that another attempt was made for, stays as it is.
-- A row of @rows is an array: id, attempt.
SET XACT_ABORT ON;
SET LOCK_TIMEOUT 5000;
UPDATE j
SET status = 'queued', queued_at = SYSUTCDATETIME(), updated_at = SYSUTCDATETIME()
FROM
    OPENJSON (@rows) WITH (
        listed_id char(64) '$[0]',
        listed_attempt int '$[1]'
    ) AS n
CROSS JOIN sqlwriter.job AS j
WHERE
    j.job_id = n.listed_id COLLATE Latin1_General_BIN2 AND j.attempt = n.listed_attempt
    AND j.status IN ('pending_queue', 'pending_retry')
OPTION (LOOP JOIN, FORCE ORDER);
GO
-- jobs_refused
DECLARE @rows nvarchar(max);
DECLARE @most bigint;
-- Which batches' message was refused once too often. A row of @rows is an array: id, attempt.
SELECT
    j.job_id, j.attempt
FROM
    OPENJSON (@rows) WITH (
        listed_id char(64) '$[0]',
        listed_attempt int '$[1]'
    ) AS n
CROSS JOIN sqlwriter.job AS j
WHERE
    j.job_id = n.listed_id COLLATE Latin1_General_BIN2 AND j.attempt = n.listed_attempt
    AND j.status IN ('pending_queue', 'pending_retry', 'queued') AND j.queue_attempt_count + 1 >= @most
OPTION (LOOP JOIN, FORCE ORDER);
GO
-- jobs_rescue
DECLARE @rows nvarchar(max);
DECLARE @stale bigint;
DECLARE @released bigint;
-- Batches of dead workers are sent again as another attempt, unless somebody has said something meanwhile. A row of
-- @rows is an array: id, attempt.
SET XACT_ABORT ON;
SET LOCK_TIMEOUT 5000;
UPDATE j
SET
    status = 'pending_retry', attempt = j.attempt + 1,
    lost_workers = j.lost_workers + CASE WHEN j.owner IS NULL THEN 0 ELSE 1 END,
    owner = NULL, heartbeat_at = NULL, updated_at = SYSUTCDATETIME()
FROM
    OPENJSON (@rows) WITH (
        listed_id char(64) '$[0]',
        listed_attempt int '$[1]'
    ) AS n
CROSS JOIN sqlwriter.job AS j
WHERE
    j.job_id = n.listed_id COLLATE Latin1_General_BIN2 AND j.attempt = n.listed_attempt AND j.status = 'processing'
    AND (
        (j.owner IS NOT NULL AND j.heartbeat_at <= CAST(DATEADD(MILLISECOND, -@stale, SYSUTCDATETIME()) AS datetime2(3)))
        OR (j.owner IS NULL AND j.updated_at <= CAST(DATEADD(MILLISECOND, -@released, SYSUTCDATETIME()) AS datetime2(3)))
    )
OPTION (LOOP JOIN, FORCE ORDER);
GO
-- jobs_resume
DECLARE @rows nvarchar(max);
DECLARE @cancelled nvarchar(2000);
-- Batches of a run that runs again are sent again, unless a worker came meanwhile. A row of @rows is an array: id.
SET XACT_ABORT ON;
SET LOCK_TIMEOUT 5000;
UPDATE j
SET
    status = 'pending_retry', attempt = attempt + 1, epoch = epoch + 1, queue_attempt_count = 0, lost_workers = 0,
    last_queue_error = NULL, error = NULL, owner = NULL, heartbeat_at = NULL, process_end_time = NULL,
    updated_at = SYSUTCDATETIME()
FROM
    OPENJSON (@rows) WITH (
        listed_id char(64) '$[0]'
    ) AS n
CROSS JOIN sqlwriter.job AS j
WHERE
    j.job_id = n.listed_id COLLATE Latin1_General_BIN2
    AND (
        j.status IN ('pending_queue', 'pending_retry', 'queued')
        OR (j.status = 'failed' AND j.error = @cancelled)
    )
OPTION (LOOP JOIN, FORCE ORDER);
GO
-- jobs_silenced
DECLARE @rows nvarchar(max);
-- Queued batches whose message nobody brought are sent again as another attempt, unless a worker came meanwhile. A row of
-- @rows is an array: id, attempt.
SET XACT_ABORT ON;
SET LOCK_TIMEOUT 5000;
UPDATE j
SET status = 'pending_retry', attempt = j.attempt + 1, updated_at = SYSUTCDATETIME()
FROM
    OPENJSON (@rows) WITH (
        listed_id char(64) '$[0]',
        listed_attempt int '$[1]'
    ) AS n
CROSS JOIN sqlwriter.job AS j
WHERE
    j.job_id = n.listed_id COLLATE Latin1_General_BIN2 AND j.attempt = n.listed_attempt
    AND j.status = 'queued'
OPTION (LOOP JOIN, FORCE ORDER);
GO
-- jobs_silent
DECLARE @limit bigint;
DECLARE @sys_name nvarchar(256);
DECLARE @silent bigint;
-- Queued batches whose message is taken for lost. They have been queued for @silent. And a batch that was queued later was
-- claimed since, @silent ago or longer: the queue has passed them. Or nothing was queued or claimed for @silent: then the
-- first of them alone, and what becomes of its message says more of the others. All that is asked is of the running runs
-- of the environment.
SELECT TOP (@limit)
    j.job_id, j.attempt
FROM sqlwriter.run AS r
CROSS JOIN sqlwriter.job AS j
WHERE
    r.status = 'running' AND r.sys_name = @sys_name AND j.run_id = r.run_id AND j.status = 'queued'
    AND j.queued_at <= CAST(DATEADD(MILLISECOND, -@silent, SYSUTCDATETIME()) AS datetime2(3))
    AND (
        j.queued_at < (
            SELECT MAX(c.queued_at)
            FROM sqlwriter.run AS o
            CROSS JOIN sqlwriter.job AS c
            WHERE
                o.status = 'running' AND o.sys_name = @sys_name AND c.run_id = o.run_id
                AND c.claimed_at <= CAST(DATEADD(MILLISECOND, -@silent, SYSUTCDATETIME()) AS datetime2(3))
                AND c.claimed_at >= c.queued_at
        )
        OR (
            j.job_number = (
                SELECT MIN(c.job_number)
                FROM sqlwriter.run AS o
                CROSS JOIN sqlwriter.job AS c
                WHERE o.status = 'running' AND o.sys_name = @sys_name AND c.run_id = o.run_id AND c.status = 'queued'
            )
            AND NOT EXISTS (
                SELECT 1
                FROM sqlwriter.run AS o
                CROSS JOIN sqlwriter.job AS c
                WHERE
                    o.status = 'running' AND o.sys_name = @sys_name AND c.run_id = o.run_id
                    AND (
                        c.status = 'pending_retry'
                        OR c.claimed_at > CAST(DATEADD(MILLISECOND, -@silent, SYSUTCDATETIME()) AS datetime2(3))
                        OR c.queued_at > CAST(DATEADD(MILLISECOND, -@silent, SYSUTCDATETIME()) AS datetime2(3))
                    )
            )
        )
    )
ORDER BY j.job_number;
GO
-- jobs_to_send
DECLARE @limit bigint;
DECLARE @sys_name nvarchar(256);
-- Batches of running runs whose message is to be sent again: by run, the oldest first, and by number.
SELECT TOP (@limit)
    j.job_id, j.run_id, j.number, j.status, j.attempt, j.queue_attempt_count, j.last_queue_error, j.error, j.owner, j.epoch,
    j.total_count, j.success_count, j.failure_count, j.created_at, j.queued_at, j.process_start_time, j.process_end_time,
    j.heartbeat_at, j.lost_workers
FROM sqlwriter.job AS j
INNER JOIN sqlwriter.run AS r ON r.run_id = j.run_id
WHERE r.status = 'running' AND r.cancel = 0 AND r.sys_name = @sys_name AND j.status = 'pending_retry'
ORDER BY r.run_number, j.number;
GO
-- jobs_unsent
DECLARE @counted bigint;
DECLARE @reason nvarchar(2000);
DECLARE @rows nvarchar(max);
-- Batches whose message was not accepted, or nobody knows, are sent again as another attempt. @counted is 1 when the queue
-- refused it. A row of @rows is an array: id, attempt.
SET XACT_ABORT ON;
SET LOCK_TIMEOUT 5000;
UPDATE j
SET
    status = 'pending_retry', attempt = j.attempt + 1, queue_attempt_count = j.queue_attempt_count + @counted,
    last_queue_error = @reason, updated_at = SYSUTCDATETIME()
FROM
    OPENJSON (@rows) WITH (
        listed_id char(64) '$[0]',
        listed_attempt int '$[1]'
    ) AS n
CROSS JOIN sqlwriter.job AS j
WHERE
    j.job_id = n.listed_id COLLATE Latin1_General_BIN2 AND j.attempt = n.listed_attempt
    AND j.status IN ('pending_queue', 'pending_retry', 'queued')
OPTION (LOOP JOIN, FORCE ORDER);
GO
-- jobs_waiting
DECLARE @run nvarchar(64);
-- The batches of a run that wait. Their index has all that is asked for: nothing waits here for the lock on a row while it
-- has one on the index, as a reader that looks up more would beside whoever changes the row first.
SELECT j.job_id
FROM sqlwriter.job AS j
WHERE j.run_id = @run AND j.status IN ('pending_queue', 'pending_retry', 'queued');
GO
-- run_add
DECLARE @batches bigint;
DECLARE @documents bigint;
DECLARE @watermark nvarchar(max);
DECLARE @wait bigint;
DECLARE @run nvarchar(64);
DECLARE @owner nvarchar(64);
DECLARE @epoch bigint;
DECLARE @first bigint;
-- What a chunk adds to its run. Only the manager that has the run adds, and only what comes next. A chunk is
-- progress: the managers that died before it count no more.
SET XACT_ABORT ON;
SET LOCK_TIMEOUT 5000;
UPDATE sqlwriter.run
SET
    batches = batches + @batches, documents = documents + @documents, watermark = NULLIF(@watermark, ''),
    next_at = CAST(DATEADD(MILLISECOND, @wait, SYSUTCDATETIME()) AS datetime2(3)), heartbeat_at = SYSUTCDATETIME(),
    lost_managers = 0
WHERE
    run_id = @run AND owner = @owner AND epoch = @epoch AND status = 'running'
    AND cancel = 0 AND handed_off_at IS NULL AND batches = @first - 1;
GO
-- run_again
DECLARE @run nvarchar(64);
-- A run of which a batch is wanted again runs again if it had completed, and has more to hand off.
SET XACT_ABORT ON;
SET LOCK_TIMEOUT 5000;
UPDATE sqlwriter.run
SET
    cancel = CASE WHEN status = 'running' THEN cancel ELSE 0 END, status = 'running', ended_at = NULL,
    handed_off_at = NULL
WHERE run_id = @run AND status IN ('running', 'completed', 'completed_with_failures');
GO
-- run_ask_end
DECLARE @run nvarchar(64);
-- Asks a running run to end. Its heartbeat is its own.
SET XACT_ABORT ON;
SET LOCK_TIMEOUT 5000;
UPDATE sqlwriter.run
SET cancel = 1
WHERE run_id = @run AND status = 'running';
GO
-- run_beat
DECLARE @run nvarchar(64);
DECLARE @owner nvarchar(64);
DECLARE @epoch bigint;
-- The manager lives, as long as the run is its own.
SET XACT_ABORT ON;
SET LOCK_TIMEOUT 5000;
UPDATE sqlwriter.run
SET heartbeat_at = SYSUTCDATETIME()
WHERE run_id = @run AND owner = @owner AND epoch = @epoch AND status = 'running';
GO
-- run_brief
DECLARE @run nvarchar(64);
-- One run without what may be long.
SELECT
    r.run_id, r.sys_name, r.kind, r.pattern, r.rate_per_minute, r.document_limit, r.matched_count, r.at_least,
    r.named_count, r.requested_by, r.why, r.status, r.cancel, r.counts, r.error, r.documents, r.batches, r.owner, r.epoch,
    r.started_at, r.handed_off_at, r.ended_at, r.heartbeat_at, r.next_at, r.lost_managers, SYSUTCDATETIME() AS now_at
FROM sqlwriter.run AS r
WHERE r.run_id = @run;
GO
-- run_cancelled
DECLARE @run nvarchar(64);
DECLARE @stale bigint;
-- Ends a run that somebody asked to end, when no worker lives that has a batch of it.
SET XACT_ABORT ON;
SET LOCK_TIMEOUT 5000;
UPDATE sqlwriter.run
SET status = 'cancelled', ended_at = SYSUTCDATETIME()
WHERE
    run_id = @run AND status = 'running' AND cancel = 1
    AND NOT EXISTS (
        SELECT 1 FROM sqlwriter.job AS j
        WHERE
            j.run_id = @run AND j.status = 'processing' AND j.owner IS NOT NULL
            AND j.heartbeat_at > CAST(DATEADD(MILLISECOND, -@stale, SYSUTCDATETIME()) AS datetime2(3))
    );
GO
-- run_claim
DECLARE @owner nvarchar(64);
DECLARE @shown bigint;
DECLARE @run nvarchar(64);
DECLARE @epoch bigint;
DECLARE @stale bigint;
-- Gives a run to a manager. Of all who try at the same time one changes the row: the epoch that they read is gone then.
-- A former owner that is still there let go of it (its epoch is @shown), or has said nothing for @stale and is lost.
SET XACT_ABORT ON;
SET LOCK_TIMEOUT 5000;
UPDATE sqlwriter.run
SET
    owner = @owner, epoch = epoch + 1, heartbeat_at = SYSUTCDATETIME(),
    lost_managers = lost_managers + CASE WHEN owner IS NOT NULL AND epoch <> @shown THEN 1 ELSE 0 END
WHERE
    run_id = @run AND epoch = @epoch AND status = 'running' AND cancel = 0 AND pattern IS NOT NULL AND handed_off_at IS NULL
    AND (
        owner IS NULL OR epoch = @shown
        OR heartbeat_at <= CAST(DATEADD(MILLISECOND, -@stale, SYSUTCDATETIME()) AS datetime2(3))
    );
GO
-- run_complete
DECLARE @run nvarchar(64);
-- Ends a run of which everything is done: with failures where a batch failed, or has documents that failed or were
-- deferred.
SET XACT_ABORT ON;
SET LOCK_TIMEOUT 5000;
UPDATE sqlwriter.run
SET
    status = CASE
        WHEN EXISTS (
            SELECT 1 FROM sqlwriter.job AS j
            WHERE j.run_id = @run AND (j.status = 'failed' OR j.failure_count > 0)
        ) THEN 'completed_with_failures'
        ELSE 'completed'
    END,
    ended_at = SYSUTCDATETIME()
WHERE
    run_id = @run AND status = 'running' AND handed_off_at IS NOT NULL
    AND NOT EXISTS (
        SELECT 1 FROM sqlwriter.job AS j
        WHERE j.run_id = @run AND j.status IN ('pending_queue', 'pending_retry', 'queued', 'processing')
    );
GO
-- run_fail
DECLARE @reason nvarchar(2000);
DECLARE @run nvarchar(64);
DECLARE @epoch bigint;
DECLARE @stale bigint;
-- Gives up the hand-off of a run that nobody works on.
SET XACT_ABORT ON;
SET LOCK_TIMEOUT 5000;
UPDATE sqlwriter.run
SET status = 'failed', error = @reason, owner = NULL, ended_at = SYSUTCDATETIME()
WHERE
    run_id = @run AND epoch = @epoch AND status = 'running' AND pattern IS NOT NULL AND handed_off_at IS NULL
    AND (owner IS NULL OR heartbeat_at <= CAST(DATEADD(MILLISECOND, -@stale, SYSUTCDATETIME()) AS datetime2(3)));
GO
-- run_jobs
DECLARE @run nvarchar(64);
-- How many batches of a run have which status. The statuses are named, so that each is a range of the index of statuses.
SELECT
    j.status, COUNT(*) AS jobs
FROM sqlwriter.job AS j
WHERE j.run_id = @run AND j.status IN ('pending_queue', 'pending_retry', 'queued', 'processing', 'completed', 'failed')
GROUP BY j.status;
GO
-- run_latest
DECLARE @limit bigint;
DECLARE @sys_name nvarchar(256);
-- The latest runs of an environment, newest first: their numbers grow, whatever the clock does.
-- They come without what may be long: a filter of workers that names documents.
SELECT TOP (@limit)
    r.run_id, r.sys_name, r.kind, r.pattern, r.rate_per_minute, r.document_limit, r.matched_count, r.at_least,
    r.named_count, r.requested_by, r.why, r.status, r.cancel, r.counts, r.error, r.documents, r.batches, r.owner, r.epoch,
    r.started_at, r.handed_off_at, r.ended_at, r.heartbeat_at, r.next_at, r.lost_managers, SYSUTCDATETIME() AS now_at,
    CASE WHEN r.pattern IS NULL OR r.named_count = 0 THEN r.filter END AS filter
FROM sqlwriter.run AS r
WHERE r.sys_name = @sys_name
ORDER BY r.run_number DESC;
GO
-- run_lease
DECLARE @run nvarchar(64);
-- Keeps the row of a run from others until the transaction ends, and changes nothing: what is read after it stays so.
-- 0 rows when it has none of these statuses: running.
SET XACT_ABORT ON;
SET LOCK_TIMEOUT 5000;
UPDATE sqlwriter.run
SET epoch = epoch
WHERE
    run_id = @run AND pattern IS NOT NULL
    AND status IN ('running');
GO
-- run_lease_ended
DECLARE @run nvarchar(64);
-- Keeps the row of a run from others until the transaction ends, and changes nothing: what is read after it stays so.
-- 0 rows when it has none of these statuses: running, completed, with failures or without.
SET XACT_ABORT ON;
SET LOCK_TIMEOUT 5000;
UPDATE sqlwriter.run
SET epoch = epoch
WHERE
    run_id = @run AND pattern IS NOT NULL
    AND status IN ('running', 'completed', 'completed_with_failures');
GO
-- run_open
DECLARE @limit bigint;
DECLARE @sys_name nvarchar(256);
-- The running runs of an environment that many work on, oldest first, without what may be long.
SELECT TOP (@limit)
    r.run_id, r.sys_name, r.kind, r.pattern, r.rate_per_minute, r.document_limit, r.matched_count, r.at_least,
    r.named_count, r.requested_by, r.why, r.status, r.cancel, r.counts, r.error, r.documents, r.batches, r.owner, r.epoch,
    r.started_at, r.handed_off_at, r.ended_at, r.heartbeat_at, r.next_at, r.lost_managers, SYSUTCDATETIME() AS now_at
FROM sqlwriter.run AS r
WHERE r.status = 'running' AND r.sys_name = @sys_name AND r.pattern IS NOT NULL
ORDER BY r.run_number;
GO
-- run_outcomes
DECLARE @run nvarchar(64);
-- How many documents of a run have which outcome.
SELECT
    i.outcome, COUNT(*) AS documents
FROM sqlwriter.batch_item AS i
WHERE i.run_id = @run
GROUP BY i.outcome;
GO
-- run_read
DECLARE @run nvarchar(64);
-- One run, with all that was asked for and how far that was looked for: either may be long.
SELECT
    r.run_id, r.sys_name, r.kind, r.pattern, r.rate_per_minute, r.document_limit, r.matched_count, r.at_least,
    r.named_count, r.requested_by, r.why, r.status, r.cancel, r.counts, r.error, r.documents, r.batches, r.owner, r.epoch,
    r.started_at, r.handed_off_at, r.ended_at, r.heartbeat_at, r.next_at, r.lost_managers, SYSUTCDATETIME() AS now_at,
    r.filter, r.watermark
FROM sqlwriter.run AS r
WHERE r.run_id = @run;
GO
-- run_release
DECLARE @ended bigint;
DECLARE @run nvarchar(64);
DECLARE @owner nvarchar(64);
DECLARE @epoch bigint;
-- The manager lets go of its run. Where @ended is 1, there is nothing more to hand off, and no manager
-- that died counts any more.
SET XACT_ABORT ON;
SET LOCK_TIMEOUT 5000;
UPDATE sqlwriter.run
SET
    owner = NULL, heartbeat_at = SYSUTCDATETIME(),
    handed_off_at = CASE WHEN @ended = 1 THEN SYSUTCDATETIME() ELSE handed_off_at END,
    lost_managers = CASE WHEN @ended = 1 THEN 0 ELSE lost_managers END
WHERE run_id = @run AND owner = @owner AND epoch = @epoch AND status = 'running';
GO
-- run_resume
DECLARE @run nvarchar(64);
-- A failed or cancelled run runs again, and a manager sends its messages. Whoever still thinks that it has it has another
-- epoch.
SET XACT_ABORT ON;
SET LOCK_TIMEOUT 5000;
UPDATE sqlwriter.run
SET
    status = 'running', cancel = 0, owner = NULL, ended_at = NULL, error = NULL, epoch = epoch + 1, lost_managers = 0,
    handed_off_at = NULL
WHERE run_id = @run AND pattern IS NOT NULL AND status IN ('failed', 'cancelled');
GO
-- run_sent
DECLARE @run nvarchar(64);
DECLARE @owner nvarchar(64);
DECLARE @epoch bigint;
-- Messages that the run's manager sent were accepted, which is progress: the managers that died before it count no
-- more. Most runs have lost none, and then nothing is written.
SET XACT_ABORT ON;
SET LOCK_TIMEOUT 5000;
UPDATE sqlwriter.run
SET lost_managers = 0
WHERE run_id = @run AND owner = @owner AND epoch = @epoch AND status = 'running' AND lost_managers > 0;
GO
-- run_start
DECLARE @run nvarchar(64);
DECLARE @sys_name nvarchar(256);
DECLARE @kind nvarchar(40);
DECLARE @filter nvarchar(max);
DECLARE @pattern nvarchar(40);
DECLARE @rate bigint;
DECLARE @bound bigint;
DECLARE @matched bigint;
DECLARE @at_least bigint;
DECLARE @named bigint;
DECLARE @by nvarchar(256);
DECLARE @why nvarchar(2000);
-- A new run that many may work on: running, nobody's. Its id is a key: a second one of the same id is an error. Nobody has
-- said anything yet, so the heartbeat is its beginning.
SET XACT_ABORT ON;
SET LOCK_TIMEOUT 5000;
INSERT INTO sqlwriter.run (
    run_id, sys_name, kind, filter, pattern, rate_per_minute, document_limit, matched_count, at_least, named_count,
    requested_by, why, status, cancel, counts, started_at, heartbeat_at
)
VALUES (
    @run, @sys_name, @kind, NULLIF(@filter, ''), NULLIF(@pattern, ''), @rate, @bound, @matched, @at_least, @named,
    @by, @why, 'running', 0, '{}', SYSUTCDATETIME(), SYSUTCDATETIME()
);
GO
-- run_wanted
DECLARE @run nvarchar(64);
-- Whether somebody asked to end a run.
SELECT r.cancel FROM sqlwriter.run AS r WHERE r.run_id = @run;
GO
-- worker_beat
DECLARE @owner nvarchar(64);
-- A worker lives.
SET XACT_ABORT ON;
SET LOCK_TIMEOUT 5000;
UPDATE sqlwriter.worker
SET heartbeat_at = SYSUTCDATETIME()
WHERE worker_id = @owner;
GO
-- worker_begin
DECLARE @kind nvarchar(40);
DECLARE @instance nvarchar(256);
DECLARE @run nvarchar(64);
DECLARE @job varchar(64);
DECLARE @owner nvarchar(64);
-- The row of a worker that claimed a run or a batch.
SET XACT_ABORT ON;
SET LOCK_TIMEOUT 5000;
UPDATE sqlwriter.worker
SET
    kind = @kind, instance = @instance, status = 'RUNNING', run_id = @run, job_id = NULLIF(@job, ''), completed_at = NULL,
    heartbeat_at = SYSUTCDATETIME()
WHERE worker_id = @owner;
INSERT INTO sqlwriter.worker (worker_id, kind, instance, status, run_id, job_id, started_at, heartbeat_at)
SELECT @owner, @kind, @instance, 'RUNNING', @run, NULLIF(@job, ''), SYSUTCDATETIME(), SYSUTCDATETIME()
WHERE NOT EXISTS (SELECT 1 FROM sqlwriter.worker AS w WHERE w.worker_id = @owner);
GO
-- worker_end
DECLARE @status varchar(20);
DECLARE @owner nvarchar(64);
-- A running worker gets its next status; one that ended stays as it is. The heartbeat says when it was last heard of.
SET XACT_ABORT ON;
SET LOCK_TIMEOUT 5000;
UPDATE sqlwriter.worker
SET status = @status, completed_at = CASE WHEN @status = 'IDLE' THEN completed_at ELSE SYSUTCDATETIME() END
WHERE worker_id = @owner AND status = 'RUNNING';
GO
-- worker_processed
DECLARE @documents bigint;
DECLARE @owner nvarchar(64);
-- A worker has done some documents more.
SET XACT_ABORT ON;
SET LOCK_TIMEOUT 5000;
UPDATE sqlwriter.worker
SET documents_processed = documents_processed + @documents
WHERE worker_id = @owner;
GO
-- workers_dead
DECLARE @limit bigint;
DECLARE @sys_name nvarchar(256);
DECLARE @stale bigint;
-- The running workers that have said nothing for @stale.
SELECT TOP (@limit)
    w.worker_id
FROM sqlwriter.worker AS w
INNER JOIN sqlwriter.run AS r ON r.run_id = w.run_id
WHERE
    w.status = 'RUNNING' AND r.sys_name = @sys_name
    AND w.heartbeat_at <= CAST(DATEADD(MILLISECOND, -@stale, SYSUTCDATETIME()) AS datetime2(3))
ORDER BY w.worker_id;
GO
-- workers_of_run
DECLARE @run nvarchar(64);
-- The running workers of a run: its manager, and those that have a batch of it.
SELECT w.worker_id, w.kind FROM sqlwriter.worker AS w WHERE w.status = 'RUNNING' AND w.run_id = @run;
GO
-- workers_rescue
DECLARE @rows nvarchar(max);
DECLARE @stale bigint;
-- Running workers are failed, those that have said nothing for @stale. A row of @rows is an array: id.
SET XACT_ABORT ON;
SET LOCK_TIMEOUT 5000;
UPDATE w
SET status = 'FAILED', completed_at = SYSUTCDATETIME()
FROM
    OPENJSON (@rows) WITH (
        listed_id nvarchar(64) '$[0]'
    ) AS n
CROSS JOIN sqlwriter.worker AS w
WHERE
    w.worker_id = n.listed_id COLLATE Latin1_General_BIN2 AND w.status = 'RUNNING'
    AND w.heartbeat_at <= CAST(DATEADD(MILLISECOND, -@stale, SYSUTCDATETIME()) AS datetime2(3))
OPTION (LOOP JOIN, FORCE ORDER);
GO
