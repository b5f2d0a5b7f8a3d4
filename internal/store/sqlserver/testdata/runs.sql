-- batch_beat
DECLARE @batch varchar(64);
DECLARE @owner varchar(64);
DECLARE @epoch bigint;
-- Renews the heartbeat of a batch that the worker has.
SET XACT_ABORT ON;
SET LOCK_TIMEOUT 5000;
UPDATE sqlwriter.batch
SET heartbeat_at = SYSUTCDATETIME()
WHERE batch_id = @batch AND owner = @owner AND epoch = @epoch AND status = 'processing';
GO
-- batch_claim
DECLARE @owner varchar(64);
DECLARE @shown bigint;
DECLARE @batch varchar(64);
DECLARE @epoch bigint;
DECLARE @attempt bigint;
DECLARE @stale bigint;
-- Gives a batch to a worker. The batch has no owner, its worker released it (its epoch is @shown), or its
-- heartbeat is older than @stale. Of several claims at the same time one succeeds, because it changes the epoch
-- that the others expect. A worker that did not release the batch counts as lost.
SET XACT_ABORT ON;
SET LOCK_TIMEOUT 5000;
UPDATE sqlwriter.batch
SET
    status = 'processing', owner = @owner, epoch = epoch + 1,
    heartbeat_at = SYSUTCDATETIME(), claimed_at = SYSUTCDATETIME(), updated_at = SYSUTCDATETIME(),
    process_start_time = COALESCE(process_start_time, SYSUTCDATETIME()),
    lost_workers = lost_workers + CASE
        WHEN status = 'processing' AND owner IS NOT NULL AND epoch <> @shown THEN 1
        ELSE 0
    END
WHERE
    batch_id = @batch AND epoch = @epoch AND attempt = @attempt
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
-- batch_dead
DECLARE @reason nvarchar(2000);
DECLARE @batch varchar(64);
DECLARE @epoch bigint;
DECLARE @attempt bigint;
DECLARE @stale bigint;
-- Fails a batch whose message of @attempt is a dead letter, unless its worker is alive or it has another attempt.
SET XACT_ABORT ON;
SET LOCK_TIMEOUT 5000;
UPDATE sqlwriter.batch
SET status = 'failed', error = @reason, process_end_time = SYSUTCDATETIME(), updated_at = SYSUTCDATETIME()
WHERE
    batch_id = @batch AND epoch = @epoch AND attempt = @attempt
    AND (
        status IN ('pending_queue', 'pending_retry', 'queued')
        OR (
            status = 'processing'
            AND (owner IS NULL OR heartbeat_at <= CAST(DATEADD(MILLISECOND, -@stale, SYSUTCDATETIME()) AS datetime2(3)))
        )
    );
GO
-- batch_details
DECLARE @limit bigint;
DECLARE @batch varchar(64);
-- The latest error details of a batch, newest first.
SELECT TOP (@limit)
    e.document_id, COALESCE(e.entity_id, 0) AS entity_id, e.error_code, e.error_message, e.error_type,
    e.retry_count, e.is_retryable, e.created_at
FROM sqlwriter.error_detail AS e
WHERE e.batch_id = @batch
ORDER BY e.error_id DESC;
GO
-- batch_fail
DECLARE @reason nvarchar(2000);
DECLARE @batch varchar(64);
DECLARE @owner varchar(64);
DECLARE @epoch bigint;
-- Fails a batch that the worker has.
SET XACT_ABORT ON;
SET LOCK_TIMEOUT 5000;
UPDATE sqlwriter.batch
SET status = 'failed', error = @reason, process_end_time = SYSUTCDATETIME(), updated_at = SYSUTCDATETIME()
WHERE batch_id = @batch AND owner = @owner AND epoch = @epoch AND status = 'processing';
GO
-- batch_finish
DECLARE @status varchar(64);
DECLARE @error nvarchar(2000);
DECLARE @success bigint;
DECLARE @failure bigint;
DECLARE @outcomes nvarchar(2000);
DECLARE @batch varchar(64);
DECLARE @owner varchar(64);
DECLARE @epoch bigint;
-- Ends a batch that the worker has, with its counts. A completed one stays completed, and @outcomes is final.
SET XACT_ABORT ON;
SET LOCK_TIMEOUT 5000;
UPDATE sqlwriter.batch
SET
    status = @status, error = NULLIF(@error, ''), success_count = @success, failure_count = @failure,
    outcomes = NULLIF(@outcomes, ''),
    process_end_time = SYSUTCDATETIME(), updated_at = SYSUTCDATETIME()
WHERE batch_id = @batch AND owner = @owner AND epoch = @epoch AND status = 'processing';
GO
-- batch_lease
DECLARE @batch varchar(64);
DECLARE @owner varchar(64);
DECLARE @epoch bigint;
-- Locks a batch that the worker has until the transaction ends.
SET XACT_ABORT ON;
SET LOCK_TIMEOUT 5000;
UPDATE sqlwriter.batch
SET updated_at = SYSUTCDATETIME()
WHERE batch_id = @batch AND owner = @owner AND epoch = @epoch AND status = 'processing';
GO
-- batch_read
DECLARE @batch varchar(64);
-- Reads one batch.
SELECT
    b.batch_id, b.run_id, b.number, b.status, b.attempt, b.queue_attempt_count, b.last_queue_error, b.error, b.owner,
    b.epoch, b.total_count, b.success_count, b.failure_count, b.created_at, b.queued_at, b.process_start_time,
    b.process_end_time, b.heartbeat_at, b.lost_workers
FROM sqlwriter.batch AS b
WHERE b.batch_id = @batch;
GO
-- batch_refused
DECLARE @reason nvarchar(2000);
DECLARE @given_up nvarchar(2000);
DECLARE @batch varchar(64);
DECLARE @attempt bigint;
DECLARE @most bigint;
-- Fails a batch whose message the queue refused too often.
SET XACT_ABORT ON;
SET LOCK_TIMEOUT 5000;
UPDATE sqlwriter.batch
SET
    status = 'failed', attempt = attempt + 1, queue_attempt_count = queue_attempt_count + 1, last_queue_error = @reason,
    error = @given_up, process_end_time = SYSUTCDATETIME(), updated_at = SYSUTCDATETIME()
WHERE
    batch_id = @batch AND attempt = @attempt AND status IN ('pending_queue', 'pending_retry', 'queued')
    AND queue_attempt_count + 1 >= @most;
GO
-- batch_release
DECLARE @batch varchar(64);
DECLARE @owner varchar(64);
DECLARE @epoch bigint;
-- Releases a batch that the worker has. updated_at is the time of the release.
SET XACT_ABORT ON;
SET LOCK_TIMEOUT 5000;
UPDATE sqlwriter.batch
SET owner = NULL, heartbeat_at = NULL, updated_at = SYSUTCDATETIME()
WHERE batch_id = @batch AND owner = @owner AND epoch = @epoch AND status = 'processing';
GO
-- batch_requeue
DECLARE @batch varchar(64);
-- Sends a failed batch again. A new epoch ends older leases, and a new attempt gives the next message a new id.
SET XACT_ABORT ON;
SET LOCK_TIMEOUT 5000;
UPDATE sqlwriter.batch
SET
    status = 'pending_retry', attempt = attempt + 1, epoch = epoch + 1, queue_attempt_count = 0, lost_workers = 0,
    last_queue_error = NULL, error = NULL, owner = NULL, heartbeat_at = NULL, process_end_time = NULL,
    updated_at = SYSUTCDATETIME()
WHERE batch_id = @batch AND status = 'failed';
GO
-- batches_cancel
DECLARE @cancelled nvarchar(2000);
DECLARE @rows nvarchar(max);
-- Fails open batches of a cancelled run. A row of @rows: id.
SET XACT_ABORT ON;
SET LOCK_TIMEOUT 5000;
UPDATE b
SET status = 'failed', error = @cancelled, process_end_time = SYSUTCDATETIME(), updated_at = SYSUTCDATETIME()
FROM
    OPENJSON (@rows) WITH (
        listed_id varchar(64) '$[0]'
    ) AS n
CROSS JOIN sqlwriter.batch AS b
WHERE
    b.batch_id = n.listed_id COLLATE Latin1_General_BIN2
    AND b.status IN ('pending_queue', 'pending_retry', 'queued', 'processing')
OPTION (LOOP JOIN, FORCE ORDER);
GO
-- batches_cancelled
DECLARE @run varchar(64);
DECLARE @cancelled nvarchar(2000);
-- The batches of a run that failed by its cancellation.
SELECT b.batch_id
FROM sqlwriter.batch AS b
WHERE b.run_id = @run AND b.status = 'failed' AND b.error = @cancelled;
GO
-- batches_count
DECLARE @rows nvarchar(max);
-- Counts the outcomes of failed batches. A row of @rows: id.
SET XACT_ABORT ON;
SET LOCK_TIMEOUT 5000;
UPDATE b
SET
    success_count = (
        SELECT COUNT(*) FROM sqlwriter.batch_item AS i
        WHERE i.batch_id = b.batch_id AND i.outcome NOT IN ('failed', 'retry_scheduled', 'left', 'waiting')
    ),
    failure_count = (
        SELECT COUNT(*) FROM sqlwriter.batch_item AS i
        WHERE i.batch_id = b.batch_id AND i.outcome IN ('failed', 'retry_scheduled', 'left', 'waiting')
    )
FROM
    OPENJSON (@rows) WITH (
        listed_id varchar(64) '$[0]'
    ) AS n
CROSS JOIN sqlwriter.batch AS b
WHERE
    b.batch_id = n.listed_id COLLATE Latin1_General_BIN2
OPTION (LOOP JOIN, FORCE ORDER);
GO
-- batches_cut
DECLARE @run varchar(64);
DECLARE @cancelled nvarchar(2000);
-- The batches of a run that failed by its cancellation after a worker had begun. The others have no outcomes.
SELECT b.batch_id
FROM sqlwriter.batch AS b
WHERE b.run_id = @run AND b.status = 'failed' AND b.error = @cancelled AND b.process_start_time IS NOT NULL;
GO
-- batches_dead
DECLARE @limit bigint;
DECLARE @sys_name nvarchar(2000);
DECLARE @stale bigint;
DECLARE @released bigint;
-- Batches with a heartbeat older than @stale, or released longer than @released ago.
SELECT TOP (@limit)
    b.batch_id, b.attempt
FROM sqlwriter.batch AS b
INNER JOIN sqlwriter.run AS r ON r.run_id = b.run_id
WHERE
    b.status = 'processing' AND r.sys_name = @sys_name AND r.status <> 'purged'
    AND (
        (b.owner IS NOT NULL AND b.heartbeat_at <= CAST(DATEADD(MILLISECOND, -@stale, SYSUTCDATETIME()) AS datetime2(3)))
        OR (b.owner IS NULL AND b.updated_at <= CAST(DATEADD(MILLISECOND, -@released, SYSUTCDATETIME()) AS datetime2(3)))
    )
ORDER BY b.serial_number;
GO
-- batches_insert
DECLARE @run varchar(64);
DECLARE @attempt bigint;
DECLARE @rows nvarchar(max);
-- Adds the batches of a chunk. A row of @rows: id, number, documents.
SET XACT_ABORT ON;
SET LOCK_TIMEOUT 5000;
INSERT INTO sqlwriter.batch (batch_id, run_id, number, status, attempt, created_at, updated_at, total_count)
SELECT
    n.listed_id, @run, n.listed_number, 'pending_queue', @attempt, SYSUTCDATETIME(), SYSUTCDATETIME(), n.listed_total
FROM
    OPENJSON (@rows) WITH (
        listed_id varchar(64) '$[0]',
        listed_number int '$[1]',
        listed_total int '$[2]'
    ) AS n
ORDER BY n.listed_number;
GO
-- batches_list
DECLARE @limit bigint;
DECLARE @after varchar(64);
-- Batches, latest first,
-- behind one of them or from the start.
SELECT TOP (@limit)
    b.batch_id, b.run_id, b.number, b.status, b.attempt, b.queue_attempt_count, b.last_queue_error, b.error, b.owner,
    b.epoch, b.total_count, b.success_count, b.failure_count, b.created_at, b.queued_at, b.process_start_time,
    b.process_end_time, b.heartbeat_at, b.lost_workers
FROM sqlwriter.batch AS b

WHERE
    b.serial_number < CASE
        WHEN @after = '' THEN 9223372036854775807
        ELSE (SELECT a.serial_number FROM sqlwriter.batch AS a WHERE a.batch_id = @after)
    END
ORDER BY b.serial_number DESC;
GO
-- batches_list_by_status
DECLARE @limit bigint;
DECLARE @status varchar(64);
DECLARE @after varchar(64);
-- Batches, latest first, with one status,
-- behind one of them or from the start.
SELECT TOP (@limit)
    b.batch_id, b.run_id, b.number, b.status, b.attempt, b.queue_attempt_count, b.last_queue_error, b.error, b.owner,
    b.epoch, b.total_count, b.success_count, b.failure_count, b.created_at, b.queued_at, b.process_start_time,
    b.process_end_time, b.heartbeat_at, b.lost_workers
FROM sqlwriter.batch AS b

WHERE
    b.serial_number IN (
        SELECT TOP (@limit) k.serial_number FROM sqlwriter.batch AS k
        WHERE
            k.status = @status
            AND k.serial_number < CASE
                WHEN @after = '' THEN 9223372036854775807
                ELSE (SELECT a.serial_number FROM sqlwriter.batch AS a WHERE a.batch_id = @after)
            END
        ORDER BY k.serial_number DESC
    )
ORDER BY b.serial_number DESC;
GO
-- batches_of_run
DECLARE @limit bigint;
DECLARE @run varchar(64);
DECLARE @after varchar(64);
-- Batches of a run by number,
-- behind one of them or from the start.
SELECT TOP (@limit)
    b.batch_id, b.run_id, b.number, b.status, b.attempt, b.queue_attempt_count, b.last_queue_error, b.error, b.owner,
    b.epoch, b.total_count, b.success_count, b.failure_count, b.created_at, b.queued_at, b.process_start_time,
    b.process_end_time, b.heartbeat_at, b.lost_workers
FROM sqlwriter.batch AS b
WHERE
    b.run_id = @run
    AND b.number > CASE
        WHEN @after = '' THEN 0
        ELSE (SELECT a.number FROM sqlwriter.batch AS a WHERE a.batch_id = @after)
    END
ORDER BY b.number;
GO
-- batches_of_run_by_status
DECLARE @limit bigint;
DECLARE @run varchar(64);
DECLARE @status varchar(64);
DECLARE @after varchar(64);
-- Batches of a run by number, with one status,
-- behind one of them or from the start.
SELECT TOP (@limit)
    b.batch_id, b.run_id, b.number, b.status, b.attempt, b.queue_attempt_count, b.last_queue_error, b.error, b.owner,
    b.epoch, b.total_count, b.success_count, b.failure_count, b.created_at, b.queued_at, b.process_start_time,
    b.process_end_time, b.heartbeat_at, b.lost_workers
FROM sqlwriter.batch AS b
WHERE
    b.run_id = @run AND b.status = @status
    AND b.number > CASE
        WHEN @after = '' THEN 0
        ELSE (SELECT a.number FROM sqlwriter.batch AS a WHERE a.batch_id = @after)
    END
ORDER BY b.number;
GO
-- batches_on_the_way
DECLARE @sys_name nvarchar(2000);
-- Counts the batches of an environment's running runs that are queued or processing, those to retry, and the
-- runs with more to hand off.
SELECT
    (
        SELECT COUNT(*)
        FROM sqlwriter.run AS r
        CROSS JOIN sqlwriter.batch AS b
        WHERE
            r.status = 'running' AND r.sys_name = @sys_name AND b.run_id = r.run_id
            AND b.status IN ('queued', 'processing')
    ) AS busy,
    (
        SELECT COUNT(*)
        FROM sqlwriter.run AS r
        CROSS JOIN sqlwriter.batch AS b
        WHERE r.status = 'running' AND r.sys_name = @sys_name AND b.run_id = r.run_id AND b.status = 'pending_retry'
    ) AS retries,
    (
        SELECT COUNT(*)
        FROM sqlwriter.run AS r
        WHERE
            r.status = 'running' AND r.sys_name = @sys_name AND r.cancel = 0 AND r.handed_off_at IS NULL
    ) AS handing_off;
GO
-- batches_open
DECLARE @run varchar(64);
-- The open batches of a run.
SELECT b.batch_id
FROM sqlwriter.batch AS b
WHERE b.run_id = @run AND b.status IN ('pending_queue', 'pending_retry', 'queued', 'processing');
GO
-- batches_queued
DECLARE @rows nvarchar(max);
-- Marks batches whose message the queue accepted. A batch that a worker already has, or that has another attempt,
-- stays as it is. A row of @rows: id, attempt.
SET XACT_ABORT ON;
SET LOCK_TIMEOUT 5000;
UPDATE b
SET status = 'queued', queued_at = SYSUTCDATETIME(), updated_at = SYSUTCDATETIME()
FROM
    OPENJSON (@rows) WITH (
        listed_id varchar(64) '$[0]',
        listed_attempt int '$[1]'
    ) AS n
CROSS JOIN sqlwriter.batch AS b
WHERE
    b.batch_id = n.listed_id COLLATE Latin1_General_BIN2 AND b.attempt = n.listed_attempt
    AND b.status IN ('pending_queue', 'pending_retry')
OPTION (LOOP JOIN, FORCE ORDER);
GO
-- batches_refused
DECLARE @rows nvarchar(max);
DECLARE @most bigint;
-- The batches of a list whose message the queue refused too often. A row of @rows: id, attempt.
SELECT
    b.batch_id, b.attempt
FROM
    OPENJSON (@rows) WITH (
        listed_id varchar(64) '$[0]',
        listed_attempt int '$[1]'
    ) AS n
CROSS JOIN sqlwriter.batch AS b
WHERE
    b.batch_id = n.listed_id COLLATE Latin1_General_BIN2 AND b.attempt = n.listed_attempt
    AND b.status IN ('pending_queue', 'pending_retry', 'queued') AND b.queue_attempt_count + 1 >= @most
OPTION (LOOP JOIN, FORCE ORDER);
GO
-- batches_rescue
DECLARE @rows nvarchar(max);
DECLARE @stale bigint;
DECLARE @released bigint;
-- Gives batches of dead workers a new attempt, unless a heartbeat came meanwhile. A row of @rows: id, attempt.
SET XACT_ABORT ON;
SET LOCK_TIMEOUT 5000;
UPDATE b
SET
    status = 'pending_retry', attempt = b.attempt + 1,
    lost_workers = b.lost_workers + CASE WHEN b.owner IS NULL THEN 0 ELSE 1 END,
    owner = NULL, heartbeat_at = NULL, updated_at = SYSUTCDATETIME()
FROM
    OPENJSON (@rows) WITH (
        listed_id varchar(64) '$[0]',
        listed_attempt int '$[1]'
    ) AS n
CROSS JOIN sqlwriter.batch AS b
WHERE
    b.batch_id = n.listed_id COLLATE Latin1_General_BIN2 AND b.attempt = n.listed_attempt AND b.status = 'processing'
    AND (
        (b.owner IS NOT NULL AND b.heartbeat_at <= CAST(DATEADD(MILLISECOND, -@stale, SYSUTCDATETIME()) AS datetime2(3)))
        OR (b.owner IS NULL AND b.updated_at <= CAST(DATEADD(MILLISECOND, -@released, SYSUTCDATETIME()) AS datetime2(3)))
    )
OPTION (LOOP JOIN, FORCE ORDER);
GO
-- batches_resume
DECLARE @rows nvarchar(max);
DECLARE @cancelled nvarchar(2000);
-- Gives batches of a resumed run a new attempt, unless a worker claimed them meanwhile. A row of @rows: id.
SET XACT_ABORT ON;
SET LOCK_TIMEOUT 5000;
UPDATE b
SET
    status = 'pending_retry', attempt = attempt + 1, epoch = epoch + 1, queue_attempt_count = 0, lost_workers = 0,
    last_queue_error = NULL, error = NULL, owner = NULL, heartbeat_at = NULL, process_end_time = NULL,
    updated_at = SYSUTCDATETIME()
FROM
    OPENJSON (@rows) WITH (
        listed_id varchar(64) '$[0]'
    ) AS n
CROSS JOIN sqlwriter.batch AS b
WHERE
    b.batch_id = n.listed_id COLLATE Latin1_General_BIN2
    AND (
        b.status IN ('pending_queue', 'pending_retry', 'queued')
        OR (b.status = 'failed' AND b.error = @cancelled)
    )
OPTION (LOOP JOIN, FORCE ORDER);
GO
-- batches_silenced
DECLARE @rows nvarchar(max);
-- Gives queued batches with a lost message a new attempt, unless a worker claimed them meanwhile. A row of @rows:
-- id, attempt.
SET XACT_ABORT ON;
SET LOCK_TIMEOUT 5000;
UPDATE b
SET status = 'pending_retry', attempt = b.attempt + 1, updated_at = SYSUTCDATETIME()
FROM
    OPENJSON (@rows) WITH (
        listed_id varchar(64) '$[0]',
        listed_attempt int '$[1]'
    ) AS n
CROSS JOIN sqlwriter.batch AS b
WHERE
    b.batch_id = n.listed_id COLLATE Latin1_General_BIN2 AND b.attempt = n.listed_attempt
    AND b.status = 'queued'
OPTION (LOOP JOIN, FORCE ORDER);
GO
-- batches_silent
DECLARE @limit bigint;
DECLARE @sys_name nvarchar(2000);
DECLARE @silent bigint;
-- Batches whose message counts as lost, among the running runs of the environment. They have been queued for at
-- least @silent, and one of two conditions is met.
-- 1. A batch that was queued later was claimed at least @silent ago, so the queue has passed them.
-- 2. Nothing was queued or claimed for @silent. Then only the first batch counts, as a probe for the others.
SELECT TOP (@limit)
    b.batch_id, b.attempt
FROM sqlwriter.run AS r
CROSS JOIN sqlwriter.batch AS b
WHERE
    r.status = 'running' AND r.sys_name = @sys_name AND b.run_id = r.run_id AND b.status = 'queued'
    AND b.queued_at <= CAST(DATEADD(MILLISECOND, -@silent, SYSUTCDATETIME()) AS datetime2(3))
    AND (
        b.queued_at < (
            SELECT MAX(c.queued_at)
            FROM sqlwriter.run AS o
            CROSS JOIN sqlwriter.batch AS c
            WHERE
                o.status = 'running' AND o.sys_name = @sys_name AND c.run_id = o.run_id
                AND c.claimed_at <= CAST(DATEADD(MILLISECOND, -@silent, SYSUTCDATETIME()) AS datetime2(3))
                AND c.claimed_at >= c.queued_at
        )
        OR (
            b.serial_number = (
                SELECT MIN(c.serial_number)
                FROM sqlwriter.run AS o
                CROSS JOIN sqlwriter.batch AS c
                WHERE o.status = 'running' AND o.sys_name = @sys_name AND c.run_id = o.run_id AND c.status = 'queued'
            )
            AND NOT EXISTS (
                SELECT 1
                FROM sqlwriter.run AS o
                CROSS JOIN sqlwriter.batch AS c
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
ORDER BY b.serial_number;
GO
-- batches_to_send
DECLARE @limit bigint;
DECLARE @sys_name nvarchar(2000);
-- Batches of running runs whose message must be sent again, by run (oldest first) and number.
SELECT TOP (@limit)
    b.batch_id, b.run_id, b.number, b.status, b.attempt, b.queue_attempt_count, b.last_queue_error, b.error, b.owner,
    b.epoch, b.total_count, b.success_count, b.failure_count, b.created_at, b.queued_at, b.process_start_time,
    b.process_end_time, b.heartbeat_at, b.lost_workers
FROM sqlwriter.batch AS b
INNER JOIN sqlwriter.run AS r ON r.run_id = b.run_id
WHERE r.status = 'running' AND r.cancel = 0 AND r.sys_name = @sys_name AND b.status = 'pending_retry'
ORDER BY r.run_number, b.number;
GO
-- batches_unsent
DECLARE @counted bigint;
DECLARE @reason nvarchar(2000);
DECLARE @rows nvarchar(max);
-- Gives batches whose message was not accepted, or has an unknown result, a new attempt. @counted is 1 if the queue
-- refused it. A row of @rows: id, attempt.
SET XACT_ABORT ON;
SET LOCK_TIMEOUT 5000;
UPDATE b
SET
    status = 'pending_retry', attempt = b.attempt + 1, queue_attempt_count = b.queue_attempt_count + @counted,
    last_queue_error = @reason, updated_at = SYSUTCDATETIME()
FROM
    OPENJSON (@rows) WITH (
        listed_id varchar(64) '$[0]',
        listed_attempt int '$[1]'
    ) AS n
CROSS JOIN sqlwriter.batch AS b
WHERE
    b.batch_id = n.listed_id COLLATE Latin1_General_BIN2 AND b.attempt = n.listed_attempt
    AND b.status IN ('pending_queue', 'pending_retry', 'queued')
OPTION (LOOP JOIN, FORCE ORDER);
GO
-- batches_waiting
DECLARE @run varchar(64);
-- The waiting batches of a run. Their index covers the query, so the query never locks an index row while it waits
-- for a table row. Such a reader could deadlock with a writer that locks the table row first.
SELECT b.batch_id
FROM sqlwriter.batch AS b
WHERE b.run_id = @run AND b.status IN ('pending_queue', 'pending_retry', 'queued');
GO
-- details_insert
DECLARE @sys_name nvarchar(2000);
DECLARE @run varchar(64);
DECLARE @batch varchar(64);
DECLARE @rows nvarchar(max);
-- Adds failures of documents in a batch. A row of @rows: position, document, main line, code, message, type, retries,
-- retryable.
SET XACT_ABORT ON;
SET LOCK_TIMEOUT 5000;
INSERT INTO sqlwriter.error_detail (
    sys_name, run_id, batch_id, document_id, entity_id, error_code, error_message, error_type, retry_count, is_retryable,
    created_at
)
SELECT
    @sys_name, @run, @batch, n.listed_document, n.listed_entity, n.listed_code, n.listed_message,
    n.listed_type, n.listed_retries, n.listed_retryable, SYSUTCDATETIME()
FROM
    OPENJSON (@rows) WITH (
        listed_position int '$[0]',
        listed_document nvarchar(1023) '$[1]',
        listed_entity bigint '$[2]',
        listed_code nvarchar(256) '$[3]',
        listed_message nvarchar(2000) '$[4]',
        listed_type varchar(20) '$[5]',
        listed_retries int '$[6]',
        listed_retryable bit '$[7]'
    ) AS n
ORDER BY n.listed_position;
GO
-- items_count
DECLARE @batch varchar(64);
-- Counts the documents of a batch by outcome.
SELECT
    i.outcome, COUNT(*) AS documents
FROM sqlwriter.batch_item AS i
WHERE i.batch_id = @batch
GROUP BY i.outcome;
GO
-- items_insert
DECLARE @run varchar(64);
DECLARE @hashes varbinary(max);
DECLARE @rows nvarchar(max);
-- Adds documents of batches. A document that the run already has is an error. A row of @rows: key, id, batch, position.
SET XACT_ABORT ON;
SET LOCK_TIMEOUT 5000;
INSERT INTO sqlwriter.batch_item (run_id, document_key, document_id, batch_id, position)
SELECT
    @run, CAST(SUBSTRING(@hashes, 32 * n.listed_key + 1, 32) AS binary(32)), n.listed_document,
    n.listed_batch, n.listed_position
FROM
    OPENJSON (@rows) WITH (
        listed_key int '$[0]',
        listed_document nvarchar(1023) '$[1]',
        listed_batch varchar(64) '$[2]',
        listed_position int '$[3]'
    ) AS n
ORDER BY n.listed_key;
GO
-- items_known
DECLARE @rows nvarchar(max);
DECLARE @run varchar(64);
DECLARE @hashes varbinary(max);
-- The documents of a list that the run has. A row of @rows: key.
SELECT i.document_key
FROM
    OPENJSON (@rows) WITH (
        listed_key int '$[0]'
    ) AS n
CROSS JOIN sqlwriter.batch_item AS i
WHERE i.run_id = @run AND i.document_key = CAST(SUBSTRING(@hashes, 32 * n.listed_key + 1, 32) AS binary(32))
OPTION (LOOP JOIN, FORCE ORDER);
GO
-- items_open
DECLARE @batch varchar(64);
-- The documents of a batch without an outcome, in their order.
SELECT i.document_id FROM sqlwriter.batch_item AS i WHERE i.batch_id = @batch AND i.outcome IS NULL ORDER BY i.position;
GO
-- items_page
DECLARE @limit bigint;
DECLARE @run varchar(64);
DECLARE @after_key varbinary(max);
-- Documents of a run by key, after a key.
SELECT TOP (@limit)
    i.document_id, i.outcome, i.code, b.number
FROM sqlwriter.batch_item AS i
INNER JOIN sqlwriter.batch AS b ON b.batch_id = i.batch_id
WHERE
    i.run_id = @run AND i.document_key > CAST(@after_key AS binary(32))
ORDER BY i.document_key;
GO
-- items_page_by_outcome
DECLARE @limit bigint;
DECLARE @run varchar(64);
DECLARE @after_key varbinary(max);
DECLARE @rows nvarchar(max);
-- Documents of a run by key, after a key, with one of the listed outcomes. A row of @rows: outcome.
SELECT TOP (@limit)
    i.document_id, i.outcome, i.code, b.number
FROM sqlwriter.batch_item AS i
INNER JOIN sqlwriter.batch AS b ON b.batch_id = i.batch_id
WHERE
    i.run_id = @run AND i.document_key > CAST(@after_key AS binary(32))
    AND i.outcome IN (SELECT n.listed_outcome FROM OPENJSON (@rows) WITH (
        listed_outcome varchar(20) '$[0]'
    ) AS n)
ORDER BY i.document_key;
GO
-- items_save
DECLARE @rows nvarchar(max);
DECLARE @hashes varbinary(max);
DECLARE @batch varchar(64);
-- Saves outcomes of documents of a batch and replaces earlier ones. A row of @rows: key, run, outcome, code.
SET XACT_ABORT ON;
SET LOCK_TIMEOUT 5000;
UPDATE i
SET outcome = n.listed_outcome, code = n.listed_code, updated_at = SYSUTCDATETIME()
FROM
    OPENJSON (@rows) WITH (
        listed_key int '$[0]',
        listed_run varchar(64) '$[1]',
        listed_outcome varchar(20) '$[2]',
        listed_code nvarchar(256) '$[3]'
    ) AS n
CROSS JOIN sqlwriter.batch_item AS i
WHERE
    i.run_id = n.listed_run COLLATE Latin1_General_BIN2
    AND i.document_key = CAST(SUBSTRING(@hashes, 32 * n.listed_key + 1, 32) AS binary(32))
    AND i.batch_id = @batch
OPTION (LOOP JOIN, FORCE ORDER);
GO
-- run_add
DECLARE @batches bigint;
DECLARE @documents bigint;
DECLARE @watermark nvarchar(max);
DECLARE @wait bigint;
DECLARE @run varchar(64);
DECLARE @owner varchar(64);
DECLARE @epoch bigint;
DECLARE @first bigint;
-- Adds a chunk to its run. Only the run's manager may add, and only the next chunk. A chunk is progress, so it
-- resets the count of lost managers.
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
DECLARE @run varchar(64);
-- Lets a completed run continue after a batch was requeued, with more to hand off.
SET XACT_ABORT ON;
SET LOCK_TIMEOUT 5000;
UPDATE sqlwriter.run
SET
    cancel = CASE WHEN status = 'running' THEN cancel ELSE 0 END, status = 'running', ended_at = NULL,
    handed_off_at = NULL
WHERE run_id = @run AND status IN ('running', 'completed', 'completed_with_failures');
GO
-- run_ask_end
DECLARE @run varchar(64);
-- Asks a running run to end. The heartbeat stays, because only the manager renews it.
SET XACT_ABORT ON;
SET LOCK_TIMEOUT 5000;
UPDATE sqlwriter.run
SET cancel = 1
WHERE run_id = @run AND status = 'running';
GO
-- run_batches
DECLARE @run varchar(64);
-- Counts the batches of a run by status. Naming all statuses lets the query use the index that begins with the status.
SELECT
    b.status, COUNT(*) AS batches
FROM sqlwriter.batch AS b
WHERE b.run_id = @run AND b.status IN ('pending_queue', 'pending_retry', 'queued', 'processing', 'completed', 'failed')
GROUP BY b.status;
GO
-- run_beat
DECLARE @run varchar(64);
DECLARE @owner varchar(64);
DECLARE @epoch bigint;
-- Renews the heartbeat of a run that the manager has.
SET XACT_ABORT ON;
SET LOCK_TIMEOUT 5000;
UPDATE sqlwriter.run
SET heartbeat_at = SYSUTCDATETIME()
WHERE run_id = @run AND owner = @owner AND epoch = @epoch AND status = 'running';
GO
-- run_brief
DECLARE @run varchar(64);
-- One run without its long columns.
SELECT
    r.run_id, r.sys_name, r.kind, r.rate_per_minute, r.document_limit, r.matched_count, r.at_least,
    r.named_count, r.requested_by, r.why, r.status, r.cancel, r.error, r.documents, r.batches, r.owner, r.epoch,
    r.started_at, r.handed_off_at, r.ended_at, r.heartbeat_at, r.next_at, r.lost_managers, SYSUTCDATETIME() AS now_at
FROM sqlwriter.run AS r
WHERE r.run_id = @run;
GO
-- run_cancelled
DECLARE @run varchar(64);
DECLARE @stale bigint;
-- Ends a run that an operator asked to end, once no live worker has a batch of it.
SET XACT_ABORT ON;
SET LOCK_TIMEOUT 5000;
UPDATE sqlwriter.run
SET status = 'cancelled', ended_at = SYSUTCDATETIME()
WHERE
    run_id = @run AND status = 'running' AND cancel = 1
    AND NOT EXISTS (
        SELECT 1 FROM sqlwriter.batch AS b
        WHERE
            b.run_id = @run AND b.status = 'processing' AND b.owner IS NOT NULL
            AND b.heartbeat_at > CAST(DATEADD(MILLISECOND, -@stale, SYSUTCDATETIME()) AS datetime2(3))
    );
GO
-- run_claim
DECLARE @owner varchar(64);
DECLARE @shown bigint;
DECLARE @run varchar(64);
DECLARE @epoch bigint;
DECLARE @stale bigint;
-- Gives a run to a manager. Of several claims at the same time one succeeds, because it changes the epoch that the
-- others expect. A former owner released the run (its epoch is @shown), or its heartbeat is older than @stale and
-- it counts as lost.
SET XACT_ABORT ON;
SET LOCK_TIMEOUT 5000;
UPDATE sqlwriter.run
SET
    owner = @owner, epoch = epoch + 1, heartbeat_at = SYSUTCDATETIME(),
    lost_managers = lost_managers + CASE WHEN owner IS NOT NULL AND epoch <> @shown THEN 1 ELSE 0 END
WHERE
    run_id = @run AND epoch = @epoch AND status = 'running' AND cancel = 0 AND handed_off_at IS NULL
    AND (
        owner IS NULL OR epoch = @shown
        OR heartbeat_at <= CAST(DATEADD(MILLISECOND, -@stale, SYSUTCDATETIME()) AS datetime2(3))
    );
GO
-- run_complete
DECLARE @run varchar(64);
-- Completes a run whose batches have all ended.
SET XACT_ABORT ON;
SET LOCK_TIMEOUT 5000;
UPDATE sqlwriter.run
SET status = 'completed', ended_at = SYSUTCDATETIME()
WHERE
    run_id = @run AND status = 'running' AND handed_off_at IS NOT NULL
    AND NOT EXISTS (
        SELECT 1 FROM sqlwriter.batch AS b
        WHERE b.run_id = @run AND b.status IN ('pending_queue', 'pending_retry', 'queued', 'processing')
    );
GO
-- run_completed
DECLARE @run varchar(64);
-- Counts the documents of the run's other batches: completed ones by their outcomes, and those that have not begun
-- (outcomes is NULL).
SELECT
    b.outcomes, COUNT(*) AS batches, SUM(b.total_count) AS documents
FROM sqlwriter.batch AS b
WHERE b.run_id = @run AND (b.outcomes IS NOT NULL OR b.process_start_time IS NULL)
GROUP BY b.outcomes;
GO
-- run_fail
DECLARE @reason nvarchar(2000);
DECLARE @run varchar(64);
DECLARE @epoch bigint;
DECLARE @stale bigint;
-- Fails a run whose hand-off has no live manager.
SET XACT_ABORT ON;
SET LOCK_TIMEOUT 5000;
UPDATE sqlwriter.run
SET status = 'failed', error = @reason, owner = NULL, ended_at = SYSUTCDATETIME()
WHERE
    run_id = @run AND epoch = @epoch AND status = 'running' AND handed_off_at IS NULL
    AND (owner IS NULL OR heartbeat_at <= CAST(DATEADD(MILLISECOND, -@stale, SYSUTCDATETIME()) AS datetime2(3)));
GO
-- run_latest
DECLARE @limit bigint;
DECLARE @sys_name nvarchar(2000);
DECLARE @before_run varchar(64);
-- The latest runs of an environment by number, which always grows, or those before one.
-- Long filters that name documents are left out.
SELECT TOP (@limit)
    r.run_id, r.sys_name, r.kind, r.rate_per_minute, r.document_limit, r.matched_count, r.at_least,
    r.named_count, r.requested_by, r.why, r.status, r.cancel, r.error, r.documents, r.batches, r.owner, r.epoch,
    r.started_at, r.handed_off_at, r.ended_at, r.heartbeat_at, r.next_at, r.lost_managers, SYSUTCDATETIME() AS now_at,
    CASE WHEN r.named_count = 0 THEN r.filter END AS filter
FROM sqlwriter.run AS r
WHERE
    r.sys_name = @sys_name
    AND r.run_number < CASE
        WHEN @before_run = '' THEN 9223372036854775807
        ELSE (SELECT b.run_number FROM sqlwriter.run AS b WHERE b.run_id = @before_run)
    END
ORDER BY r.run_number DESC;
GO
-- run_lease
DECLARE @run varchar(64);
-- Locks the row of a run until the transaction ends, and changes nothing. It finds no row unless the run is
-- running.
SET XACT_ABORT ON;
SET LOCK_TIMEOUT 5000;
UPDATE sqlwriter.run
SET epoch = epoch
WHERE run_id = @run AND status IN ('running');
GO
-- run_lease_ended
DECLARE @run varchar(64);
-- Locks the row of a run until the transaction ends, and changes nothing. It finds no row unless the run is
-- running or completed, with failures or without.
SET XACT_ABORT ON;
SET LOCK_TIMEOUT 5000;
UPDATE sqlwriter.run
SET epoch = epoch
WHERE run_id = @run AND status IN ('running', 'completed', 'completed_with_failures');
GO
-- run_open
DECLARE @limit bigint;
DECLARE @sys_name nvarchar(2000);
-- The running runs of an environment, oldest first, without their long columns.
SELECT TOP (@limit)
    r.run_id, r.sys_name, r.kind, r.rate_per_minute, r.document_limit, r.matched_count, r.at_least,
    r.named_count, r.requested_by, r.why, r.status, r.cancel, r.error, r.documents, r.batches, r.owner, r.epoch,
    r.started_at, r.handed_off_at, r.ended_at, r.heartbeat_at, r.next_at, r.lost_managers, SYSUTCDATETIME() AS now_at
FROM sqlwriter.run AS r
WHERE r.status = 'running' AND r.sys_name = @sys_name
ORDER BY r.run_number;
GO
-- run_outcomes
DECLARE @run varchar(64);
-- Counts the documents of the run's batches that have begun and not completed, by outcome. run_completed.sql counts the
-- others, because a run may have a million documents.
SELECT
    i.outcome, COUNT(*) AS documents
FROM sqlwriter.batch AS b
INNER JOIN sqlwriter.batch_item AS i ON i.batch_id = b.batch_id
WHERE b.run_id = @run AND b.outcomes IS NULL AND b.process_start_time IS NOT NULL
GROUP BY i.outcome;
GO
-- run_read
DECLARE @run varchar(64);
-- One run with its filter and its watermark, which may be long.
SELECT
    r.run_id, r.sys_name, r.kind, r.rate_per_minute, r.document_limit, r.matched_count, r.at_least,
    r.named_count, r.requested_by, r.why, r.status, r.cancel, r.error, r.documents, r.batches, r.owner, r.epoch,
    r.started_at, r.handed_off_at, r.ended_at, r.heartbeat_at, r.next_at, r.lost_managers, SYSUTCDATETIME() AS now_at,
    r.filter, r.watermark
FROM sqlwriter.run AS r
WHERE r.run_id = @run;
GO
-- run_release
DECLARE @ended bigint;
DECLARE @run varchar(64);
DECLARE @owner varchar(64);
DECLARE @epoch bigint;
-- Releases a run that the manager has. With @ended = 1 the hand-off is complete, and the count of lost managers is
-- reset.
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
DECLARE @run varchar(64);
-- Lets a failed or cancelled run continue; a manager sends its messages. A new epoch ends older leases.
SET XACT_ABORT ON;
SET LOCK_TIMEOUT 5000;
UPDATE sqlwriter.run
SET
    status = 'running', cancel = 0, owner = NULL, ended_at = NULL, error = NULL, epoch = epoch + 1, lost_managers = 0,
    handed_off_at = NULL
WHERE run_id = @run AND status IN ('failed', 'cancelled');
GO
-- run_sent
DECLARE @run varchar(64);
DECLARE @owner varchar(64);
DECLARE @epoch bigint;
-- Resets the count of lost managers after the queue accepted messages of the run, because that is progress. For
-- most runs the count is 0, and nothing is written.
SET XACT_ABORT ON;
SET LOCK_TIMEOUT 5000;
UPDATE sqlwriter.run
SET lost_managers = 0
WHERE run_id = @run AND owner = @owner AND epoch = @epoch AND status = 'running' AND lost_managers > 0;
GO
-- run_start
DECLARE @run varchar(64);
DECLARE @sys_name nvarchar(2000);
DECLARE @kind nvarchar(2000);
DECLARE @filter nvarchar(max);
DECLARE @rate bigint;
DECLARE @bound bigint;
DECLARE @matched bigint;
DECLARE @at_least bigint;
DECLARE @named bigint;
DECLARE @by nvarchar(2000);
DECLARE @why nvarchar(2000);
-- Adds a run, running and without an owner. A duplicate id is an error. The heartbeat starts with the run.
SET XACT_ABORT ON;
SET LOCK_TIMEOUT 5000;
INSERT INTO sqlwriter.run (
    run_id, sys_name, kind, filter, rate_per_minute, document_limit, matched_count, at_least, named_count,
    requested_by, why, status, cancel, started_at, heartbeat_at
)
VALUES (
    @run, @sys_name, @kind, NULLIF(@filter, ''), @rate, @bound, @matched, @at_least, @named,
    @by, @why, 'running', 0, SYSUTCDATETIME(), SYSUTCDATETIME()
);
GO
-- run_wanted
DECLARE @run varchar(64);
-- Whether an operator asked the run to end.
SELECT r.cancel FROM sqlwriter.run AS r WHERE r.run_id = @run;
GO
-- run_with_failures
DECLARE @run varchar(64);
-- Says of a run that completed in this transaction that something is left to do.
SET XACT_ABORT ON;
SET LOCK_TIMEOUT 5000;
UPDATE sqlwriter.run
SET status = 'completed_with_failures'
WHERE run_id = @run AND status = 'completed';
GO
-- worker_beat
DECLARE @owner varchar(64);
-- Renews the heartbeat of a running worker.
SET XACT_ABORT ON;
SET LOCK_TIMEOUT 5000;
UPDATE sqlwriter.worker
SET heartbeat_at = SYSUTCDATETIME()
WHERE worker_id = @owner;
GO
-- worker_begin
DECLARE @kind nvarchar(2000);
DECLARE @instance nvarchar(2000);
DECLARE @run varchar(64);
DECLARE @batch varchar(64);
DECLARE @owner varchar(64);
-- Adds the worker of a claimed run or batch.
SET XACT_ABORT ON;
SET LOCK_TIMEOUT 5000;
UPDATE sqlwriter.worker
SET
    kind = @kind, instance = @instance, status = 'RUNNING', run_id = @run, batch_id = NULLIF(@batch, ''),
    completed_at = NULL, heartbeat_at = SYSUTCDATETIME()
WHERE worker_id = @owner;
INSERT INTO sqlwriter.worker (worker_id, kind, instance, status, run_id, batch_id, started_at, heartbeat_at)
SELECT @owner, @kind, @instance, 'RUNNING', @run, NULLIF(@batch, ''), SYSUTCDATETIME(), SYSUTCDATETIME()
WHERE NOT EXISTS (SELECT 1 FROM sqlwriter.worker AS w WHERE w.worker_id = @owner);
GO
-- worker_end
DECLARE @status varchar(64);
DECLARE @owner varchar(64);
-- Sets the final status of a running worker. Its heartbeat remains the time of its last sign of life.
SET XACT_ABORT ON;
SET LOCK_TIMEOUT 5000;
UPDATE sqlwriter.worker
SET status = @status, completed_at = CASE WHEN @status = 'IDLE' THEN completed_at ELSE SYSUTCDATETIME() END
WHERE worker_id = @owner AND status = 'RUNNING';
GO
-- worker_processed
DECLARE @documents bigint;
DECLARE @owner varchar(64);
-- Adds to the count of documents that a worker has processed.
SET XACT_ABORT ON;
SET LOCK_TIMEOUT 5000;
UPDATE sqlwriter.worker
SET documents_processed = documents_processed + @documents
WHERE worker_id = @owner;
GO
-- workers_dead
DECLARE @limit bigint;
DECLARE @sys_name nvarchar(2000);
DECLARE @stale bigint;
-- The running workers whose heartbeat is older than @stale.
SELECT TOP (@limit)
    w.worker_id
FROM sqlwriter.worker AS w
INNER JOIN sqlwriter.run AS r ON r.run_id = w.run_id
WHERE
    w.status = 'RUNNING' AND r.sys_name = @sys_name AND r.status <> 'purged'
    AND w.heartbeat_at <= CAST(DATEADD(MILLISECOND, -@stale, SYSUTCDATETIME()) AS datetime2(3))
ORDER BY w.worker_id;
GO
-- workers_of_run
DECLARE @run varchar(64);
-- The running workers of a run: its manager, and the workers of its batches.
SELECT w.worker_id, w.kind FROM sqlwriter.worker AS w WHERE w.status = 'RUNNING' AND w.run_id = @run;
GO
-- workers_rescue
DECLARE @rows nvarchar(max);
DECLARE @stale bigint;
-- Fails running workers whose heartbeat is older than @stale. A row of @rows: id.
SET XACT_ABORT ON;
SET LOCK_TIMEOUT 5000;
UPDATE w
SET status = 'FAILED', completed_at = SYSUTCDATETIME()
FROM
    OPENJSON (@rows) WITH (
        listed_id varchar(64) '$[0]'
    ) AS n
CROSS JOIN sqlwriter.worker AS w
WHERE
    w.worker_id = n.listed_id COLLATE Latin1_General_BIN2 AND w.status = 'RUNNING'
    AND w.heartbeat_at <= CAST(DATEADD(MILLISECOND, -@stale, SYSUTCDATETIME()) AS datetime2(3))
OPTION (LOOP JOIN, FORCE ORDER);
GO
