-- runs
DECLARE @limit bigint, @sys_name nvarchar(256);
-- The latest runs and their progress, newest first. The runs are selected before any batch is read.
-- documents counts those that have a batch, done those of completed batches. The percentage is of the known
-- documents. Until the hand-off ends, that is the preview's number if it is larger.
WITH latest AS (
    SELECT TOP (@limit)
        r.run_number,
        r.run_id,
        CASE
            WHEN r.handed_off_at IS NULL AND r.matched_count > r.documents THEN r.matched_count
            ELSE r.documents
        END AS documents_known
    FROM sqlwriter.run AS r
    WHERE r.sys_name = @sys_name
    ORDER BY r.run_number DESC
),

progress AS (
    SELECT
        k.run_id,
        SUM(CASE WHEN b.batch_status = 'completed' THEN CAST(b.total_count AS bigint) ELSE 0 END) AS documents_done,
        SUM(CASE WHEN b.batch_status IN ('completed', 'failed') THEN 0 ELSE 1 END) AS open_batches,
        SUM(CASE WHEN b.batch_status = 'failed' THEN 1 ELSE 0 END) AS failed_batches
    FROM latest AS k
    INNER JOIN sqlwriter.processing_job AS b ON b.run_id = k.run_id
    GROUP BY k.run_id
)

SELECT TOP (@limit)
    r.run_id,
    r.sys_name,
    r.kind,
    r.status,
    r.cancel,
    r.documents,
    COALESCE(p.documents_done, 0) AS documents_done,
    k.documents_known,
    r.at_least,
    CAST(COALESCE(p.documents_done, 0) AS float) * 100 / NULLIF(k.documents_known, 0) AS done_percent,
    r.batches,
    COALESCE(p.open_batches, 0) AS open_batches,
    COALESCE(p.failed_batches, 0) AS failed_batches,
    r.started_at,
    r.handed_off_at,
    r.ended_at,
    CAST(DATEDIFF_BIG(MILLISECOND, r.started_at, COALESCE(r.ended_at, SYSUTCDATETIME())) AS float) / 1000 AS run_seconds,
    r.requested_by,
    r.error
FROM latest AS k
INNER JOIN sqlwriter.run AS r ON r.run_id = k.run_id
LEFT OUTER JOIN progress AS p ON p.run_id = k.run_id
ORDER BY k.run_number DESC;
GO
-- batch-progress
DECLARE @limit bigint, @sys_name nvarchar(256);
-- Batches and documents by status, in the order of a batch's life (docs/requirements.md R85). Row queued is the depth
-- of the queue by the tables. stuck counts batches in processing without a heartbeat for
-- ten minutes, or released so long ago (docs/requirements.md R75). Ended batches count for 7 days, because their number
-- grows without end.
WITH batches AS (
    SELECT
        b.batch_status,
        b.total_count,
        b.updated_at,
        CASE
            WHEN b.batch_status <> 'processing' THEN 0
            WHEN
                COALESCE(b.last_heartbeat, b.updated_at)
                < CAST(DATEADD(MILLISECOND, -600000, SYSUTCDATETIME()) AS datetime2(3))
                THEN 1
            ELSE 0
        END AS is_stuck
    FROM sqlwriter.processing_job AS b
    WHERE
        b.batch_status IN ('pending_queue', 'pending_retry', 'queued', 'processing')
        AND NOT EXISTS (SELECT 1 FROM sqlwriter.run AS x WHERE x.run_id = b.run_id AND x.sys_name <> @sys_name)
    UNION ALL
    SELECT
        b.batch_status,
        b.total_count,
        b.updated_at,
        0 AS is_stuck
    FROM sqlwriter.processing_job AS b
    WHERE
        b.batch_status IN ('completed', 'failed')
        AND b.process_end_time > CAST(DATEADD(MILLISECOND, -604800000, SYSUTCDATETIME()) AS datetime2(3))
        AND NOT EXISTS (SELECT 1 FROM sqlwriter.run AS x WHERE x.run_id = b.run_id AND x.sys_name <> @sys_name)
)

SELECT TOP (@limit)
    b.batch_status,
    COUNT(*) AS batches,
    SUM(CAST(b.total_count AS bigint)) AS documents,
    MIN(b.updated_at) AS oldest_change,
    CAST(DATEDIFF_BIG(MILLISECOND, MIN(b.updated_at), SYSUTCDATETIME()) AS float) / 1000 AS oldest_seconds,
    SUM(b.is_stuck) AS stuck
FROM batches AS b
GROUP BY b.batch_status
ORDER BY
    CASE b.batch_status
        WHEN 'pending_queue' THEN 1
        WHEN 'pending_retry' THEN 2
        WHEN 'queued' THEN 3
        WHEN 'processing' THEN 4
        WHEN 'completed' THEN 5
        ELSE 6
    END ASC;
GO
-- performance
DECLARE @limit bigint, @sys_name nvarchar(256);
-- Batches completed in the last hour, day and week (docs/requirements.md R85). A batch's time is from first
-- claim to end. Documents per second are from the first claim to the last end. The percentage is of the
-- successful documents.
WITH periods AS (
    SELECT 1 AS last_hours, CAST(DATEADD(MILLISECOND, -3600000, SYSUTCDATETIME()) AS datetime2(3)) AS since
    UNION ALL
    SELECT 24 AS last_hours, CAST(DATEADD(MILLISECOND, -86400000, SYSUTCDATETIME()) AS datetime2(3)) AS since
    UNION ALL
    SELECT 168 AS last_hours, CAST(DATEADD(MILLISECOND, -604800000, SYSUTCDATETIME()) AS datetime2(3)) AS since
),

completed AS (
    SELECT
        b.batch_id,
        b.total_count,
        b.success_count,
        b.failure_count,
        b.process_start_time,
        b.process_end_time
    FROM sqlwriter.processing_job AS b
    WHERE
        b.batch_status = 'completed'
        AND b.process_end_time > CAST(DATEADD(MILLISECOND, -604800000, SYSUTCDATETIME()) AS datetime2(3))
        AND NOT EXISTS (SELECT 1 FROM sqlwriter.run AS x WHERE x.run_id = b.run_id AND x.sys_name <> @sys_name)
),

sums AS (
    SELECT
        p.last_hours,
        COUNT(b.batch_id) AS batches,
        COALESCE(SUM(CAST(b.total_count AS bigint)), 0) AS documents,
        SUM(CAST(b.success_count AS bigint)) AS success,
        SUM(CAST(b.success_count AS bigint) + b.failure_count) AS outcomes,
        AVG(CAST(DATEDIFF_BIG(MILLISECOND, b.process_start_time, b.process_end_time) AS float) / 1000) AS avg_seconds,
        CAST(DATEDIFF_BIG(MILLISECOND, MIN(b.process_start_time), MAX(b.process_end_time)) AS float) / 1000 AS span_seconds
    FROM periods AS p
    LEFT OUTER JOIN completed AS b ON b.process_end_time > p.since
    GROUP BY p.last_hours
)

SELECT TOP (@limit)
    s.last_hours,
    s.batches AS completed_batches,
    s.documents,
    s.avg_seconds AS avg_batch_seconds,
    s.documents / NULLIF(s.span_seconds, 0) AS documents_per_second,
    CAST(s.success AS float) * 100 / NULLIF(s.outcomes, 0) AS success_percent
FROM sums AS s
ORDER BY s.last_hours ASC;
GO
-- workers
DECLARE @limit bigint, @sys_name nvarchar(256);
-- The health of managers and workers (docs/requirements.md R85). Active and dead workers are RUNNING. The dead
-- ones have had no heartbeat for ten minutes (docs/requirements.md R75). The others are those that began in the
-- last 7 days, because each claim adds one. silent_seconds is the longest silence of a dead one.
WITH workers AS (
    SELECT
        w.kind,
        CASE
            WHEN w.heartbeat_at < CAST(DATEADD(MILLISECOND, -600000, SYSUTCDATETIME()) AS datetime2(3)) THEN 'DEAD'
            ELSE w.status
        END AS health,
        w.documents_processed,
        w.heartbeat_at,
        CASE
            WHEN w.heartbeat_at < CAST(DATEADD(MILLISECOND, -600000, SYSUTCDATETIME()) AS datetime2(3)) THEN w.heartbeat_at
        END AS dead_since
    FROM sqlwriter.worker AS w
    WHERE
        w.status = 'RUNNING'
        AND NOT EXISTS (SELECT 1 FROM sqlwriter.run AS x WHERE x.run_id = w.run_id AND x.sys_name <> @sys_name)
    UNION ALL
    SELECT
        w.kind,
        w.status AS health,
        w.documents_processed,
        w.heartbeat_at,
        NULL AS dead_since
    FROM sqlwriter.worker AS w
    WHERE
        w.status <> 'RUNNING' AND w.started_at > CAST(DATEADD(MILLISECOND, -604800000, SYSUTCDATETIME()) AS datetime2(3))
        AND NOT EXISTS (SELECT 1 FROM sqlwriter.run AS x WHERE x.run_id = w.run_id AND x.sys_name <> @sys_name)
)

SELECT TOP (@limit)
    h.kind,
    SUM(CASE WHEN h.health = 'RUNNING' THEN 1 ELSE 0 END) AS active,
    SUM(CASE WHEN h.health = 'DEAD' THEN 1 ELSE 0 END) AS dead,
    CAST(DATEDIFF_BIG(MILLISECOND, MIN(h.dead_since), SYSUTCDATETIME()) AS float) / 1000 AS silent_seconds,
    SUM(CASE WHEN h.health = 'IDLE' THEN 1 ELSE 0 END) AS idle,
    SUM(CASE WHEN h.health = 'COMPLETED' THEN 1 ELSE 0 END) AS completed,
    SUM(CASE WHEN h.health = 'FAILED' THEN 1 ELSE 0 END) AS failed,
    SUM(CAST(h.documents_processed AS bigint)) AS documents_processed,
    MAX(h.heartbeat_at) AS last_heartbeat
FROM workers AS h
GROUP BY h.kind
ORDER BY h.kind ASC;
GO
-- pending-retries
DECLARE @limit bigint, @sys_name nvarchar(256);
-- Batches whose message the timer will send, by run, the longest waiting first (docs/requirements.md R85).
SELECT TOP (@limit)
    b.parent_job_id,
    COUNT(*) AS pending_batches,
    MIN(b.created_at) AS oldest_batch,
    CAST(DATEDIFF_BIG(MILLISECOND, MIN(b.created_at), SYSUTCDATETIME()) AS float) / 1000 AS oldest_seconds,
    MAX(b.queue_attempt_count) AS max_attempts
FROM sqlwriter.processing_job AS b
WHERE
    b.batch_status = 'pending_retry'
    AND NOT EXISTS (SELECT 1 FROM sqlwriter.run AS x WHERE x.run_id = b.run_id AND x.sys_name <> @sys_name)
GROUP BY b.parent_job_id
ORDER BY oldest_batch ASC, b.parent_job_id ASC;
GO
-- queue-lag
DECLARE @limit bigint, @sys_name nvarchar(256);
-- Batches of the last hour by run and status, and their time from message to first claim (docs/requirements.md
-- R85). A batch that was claimed before its message was recorded has no such time.
WITH batches AS (
    SELECT
        b.run_id AS parent_job_id,
        b.batch_status,
        b.created_at,
        CASE WHEN b.process_start_time >= b.queued_at THEN b.process_start_time END AS started_at,
        b.queued_at
    FROM sqlwriter.processing_job AS b
    WHERE
        b.created_at > CAST(DATEADD(MILLISECOND, -3600000, SYSUTCDATETIME()) AS datetime2(3))
        AND NOT EXISTS (SELECT 1 FROM sqlwriter.run AS x WHERE x.run_id = b.run_id AND x.sys_name <> @sys_name)
)

SELECT TOP (@limit)
    b.parent_job_id,
    SUM(CASE WHEN b.batch_status = 'pending_queue' THEN 1 ELSE 0 END) AS pending,
    SUM(CASE WHEN b.batch_status = 'pending_retry' THEN 1 ELSE 0 END) AS pending_retry,
    SUM(CASE WHEN b.batch_status = 'queued' THEN 1 ELSE 0 END) AS queued,
    SUM(CASE WHEN b.batch_status = 'processing' THEN 1 ELSE 0 END) AS processing,
    SUM(CASE WHEN b.batch_status = 'completed' THEN 1 ELSE 0 END) AS completed,
    SUM(CASE WHEN b.batch_status = 'failed' THEN 1 ELSE 0 END) AS failed,
    AVG(CAST(DATEDIFF_BIG(MILLISECOND, b.queued_at, b.started_at) AS float) / 1000) AS avg_lag_seconds
FROM batches AS b
GROUP BY b.parent_job_id
ORDER BY MIN(b.created_at) ASC, b.parent_job_id ASC;
GO
-- batch-success
DECLARE @limit bigint, @sys_name nvarchar(256);
-- Results of the batches of each of the last 7 days (docs/requirements.md R85). In the original a queued batch is
-- successful. Here handed_off counts the batches that were queued, and the percentage is of those that ended.
WITH days AS (
    SELECT
        CONVERT(char(10), b.created_at, 23) AS created_on,
        COUNT(*) AS total_batches,
        SUM(CASE WHEN b.batch_status IN ('queued', 'processing', 'completed') THEN 1 ELSE 0 END) AS handed_off_batches,
        SUM(CASE WHEN b.batch_status = 'completed' THEN 1 ELSE 0 END) AS successful_batches,
        SUM(CASE WHEN b.batch_status = 'failed' THEN 1 ELSE 0 END) AS failed_batches,
        SUM(CASE WHEN b.batch_status IN ('completed', 'failed') THEN 1 ELSE 0 END) AS ended_batches,
        AVG(CAST(b.queue_attempt_count AS float)) AS avg_attempts
    FROM sqlwriter.processing_job AS b
    WHERE
        b.created_at > CAST(DATEADD(MILLISECOND, -604800000, SYSUTCDATETIME()) AS datetime2(3))
        AND NOT EXISTS (SELECT 1 FROM sqlwriter.run AS x WHERE x.run_id = b.run_id AND x.sys_name <> @sys_name)
    GROUP BY CONVERT(char(10), b.created_at, 23)
)

SELECT TOP (@limit)
    d.created_on,
    d.total_batches,
    d.handed_off_batches,
    d.successful_batches,
    d.failed_batches,
    CAST(d.successful_batches AS float) * 100 / NULLIF(d.ended_batches, 0) AS success_percent,
    d.avg_attempts
FROM days AS d
ORDER BY d.created_on DESC;
GO
-- error-codes
DECLARE @limit bigint, @sys_name nvarchar(256);
-- The latest 10,000 failures of documents by code, the most frequent first (docs/requirements.md R85). All of a mass
-- failure would take seconds. errors_of_type counts those of all codes of the type. A document has a row for each run in
-- which it failed. sample_id is the document that failed last, sample_line its main line.
WITH latest AS (
    SELECT TOP (10000)
        e.error_id,
        e.error_code,
        e.error_type,
        e.document_id,
        e.is_retryable,
        e.created_at
    FROM sqlwriter.error_detail AS e
    WHERE
        e.sys_name = @sys_name
        AND e.created_at > CAST(DATEADD(MILLISECOND, -604800000, SYSUTCDATETIME()) AS datetime2(3))
    ORDER BY e.created_at DESC
),

sums AS (
    SELECT
        f.error_code,
        f.error_type,
        COUNT(*) AS errors,
        CAST(COUNT(*) AS float) * 100 / NULLIF(SUM(COUNT(*)) OVER (), 0) AS errors_percent,
        SUM(COUNT(*)) OVER (PARTITION BY f.error_type) AS errors_of_type,
        COUNT(DISTINCT f.document_id) AS documents,
        SUM(CASE WHEN f.is_retryable = 1 THEN 1 ELSE 0 END) AS retryable,
        SUM(
            CASE
                WHEN f.created_at > CAST(DATEADD(MILLISECOND, -3600000, SYSUTCDATETIME()) AS datetime2(3)) THEN 1
                ELSE 0
            END
        ) AS last_hour,
        MIN(f.created_at) AS first_at,
        MAX(f.created_at) AS last_at,
        MAX(f.error_id) AS last_id
    FROM latest AS f
    GROUP BY f.error_code, f.error_type
)

SELECT TOP (@limit)
    s.error_code,
    s.error_type,
    s.errors,
    s.errors_percent,
    s.errors_of_type,
    s.documents,
    s.retryable,
    s.last_hour,
    s.first_at,
    s.last_at,
    e.document_id AS sample_id,
    e.entity_id AS sample_line
FROM sums AS s
INNER JOIN sqlwriter.error_detail AS e ON e.error_id = s.last_id
ORDER BY s.errors DESC, s.error_code ASC, s.error_type ASC;
GO
-- same-key
DECLARE @limit bigint, @sys_name nvarchar(256);
-- Lines with one manufacturer and part number and several UNSPSC codes, among the newest 100,000 lines by their number
-- (docs/requirements.md R60). A line is sure if the confidence of each of the three values is 0.8 or more. Two codes of
-- sure lines contradict each other. Texts are equal if the database's collation says so. NULL is no value.
-- It answers no value of a row: a reader may ask for it. IVCE_DTL has no index of ours, and all of it would take too long.
WITH newest AS (
    SELECT TOP (100000)
        l.detail_id
    FROM sqlwriter.ledger AS l
    WHERE
        l.sys_name = @sys_name
        AND l.outcome <> 'failed'
    ORDER BY l.detail_id DESC
),

keyed AS (
    SELECT
        n.detail_id,
        d.[CLN_MFR_AI_NM] AS manufacturer,
        d.[CLN_MFR_PRT_NUM] AS part_number,
        d.[UNSPSC_CD] AS code,
        CASE
            WHEN
                CAST(d.[MFR_CNFDC_SCR] AS float) >= 0.8
                AND CAST(d.[PRT_NUM_CNFDC_SCR] AS float) >= 0.8
                AND CAST(d.[UNSPSC_CNFDC_SCR] AS float) >= 0.8
                THEN 1
            ELSE 0
        END AS is_sure
    FROM newest AS n
    INNER JOIN [dbo].[IVCE_DTL] AS d ON d.[IVCE_DTL_UID] = n.detail_id
    WHERE
        d.[CLN_MFR_AI_NM] <> ''
        AND d.[CLN_MFR_PRT_NUM] <> ''
)

SELECT TOP (@limit)
    COUNT(*) AS line_count,
    COUNT(DISTINCT k.code) AS code_count,
    SUM(k.is_sure) AS sure_lines,
    COUNT(DISTINCT CASE WHEN k.is_sure = 1 THEN k.code END) AS sure_codes,
    MIN(k.detail_id) AS first_line,
    MAX(k.detail_id) AS last_line
FROM keyed AS k
GROUP BY k.manufacturer, k.part_number
HAVING COUNT(DISTINCT k.code) > 1
ORDER BY sure_codes DESC, first_line ASC;
GO
