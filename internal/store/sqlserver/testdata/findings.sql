-- adopted_at
-- When the ledger became complete: NULL while an adoption is running.
SELECT a.finished_at FROM sqlwriter.adoption AS a WHERE a.id = 1;
GO
-- audit_add
DECLARE @sys_name nvarchar(256);
DECLARE @action nvarchar(40);
DECLARE @by nvarchar(256);
DECLARE @why nvarchar(2000);
DECLARE @subject nvarchar(1023);
DECLARE @detail nvarchar(max);
DECLARE @level varchar(10);
DECLARE @run nvarchar(64);
DECLARE @job varchar(64);
-- Adds an entry to the audit log. The time is the database's.
SET XACT_ABORT ON;
SET LOCK_TIMEOUT 5000;
INSERT INTO sqlwriter.audit_log (done_at, sys_name, action, done_by, why, subject, detail, level, run_id, job_id)
VALUES (
    SYSUTCDATETIME(), @sys_name, @action, @by, @why, @subject, NULLIF(@detail, ''),
    NULLIF(@level, ''), NULLIF(@run, ''), NULLIF(@job, '')
);
GO
-- findings_accept
DECLARE @by nvarchar(256);
DECLARE @why nvarchar(2000);
DECLARE @rows nvarchar(max);
-- Accepts findings that are not gone, with the row hash that they have. A row of @rows: line, key, class,
-- environment.
SET XACT_ABORT ON;
SET LOCK_TIMEOUT 5000;
UPDATE f
SET state = 'accepted', accepted_hash = f.row_hash, accepted_by = @by, why = @why
FROM
    OPENJSON (@rows) WITH (
        listed_line bigint '$[0]',
        listed_key char(64) '$[1]',
        listed_class varchar(40) '$[2]',
        listed_sys nvarchar(256) '$[3]'
    ) AS n
CROSS JOIN sqlwriter.finding AS f
WHERE
    f.sys_name = n.listed_sys COLLATE Latin1_General_BIN2 AND f.class = n.listed_class COLLATE Latin1_General_BIN2
    AND f.detail_id = n.listed_line AND f.document_key = n.listed_key COLLATE Latin1_General_BIN2
    AND f.state <> 'gone'
OPTION (LOOP JOIN, FORCE ORDER);
GO
-- findings_close
DECLARE @run nvarchar(64);
DECLARE @rows nvarchar(max);
-- Makes findings gone that a run found gone and did not see, and counts those that it made gone before. A row of
-- @rows: line, key, class, environment.
SET XACT_ABORT ON;
SET LOCK_TIMEOUT 5000;
UPDATE f
SET state = 'gone', run_id = @run
FROM
    OPENJSON (@rows) WITH (
        listed_line bigint '$[0]',
        listed_key char(64) '$[1]',
        listed_class varchar(40) '$[2]',
        listed_sys nvarchar(256) '$[3]'
    ) AS n
CROSS JOIN sqlwriter.finding AS f
WHERE
    f.sys_name = n.listed_sys COLLATE Latin1_General_BIN2 AND f.class = n.listed_class COLLATE Latin1_General_BIN2
    AND f.detail_id = n.listed_line AND f.document_key = n.listed_key COLLATE Latin1_General_BIN2
    AND ((f.state = 'gone' AND f.run_id = @run) OR (f.state <> 'gone' AND f.run_id <> @run))
OPTION (LOOP JOIN, FORCE ORDER);
GO
-- findings_count
DECLARE @sys_name nvarchar(256);
-- How many findings of each class are open and accepted, and when the oldest was opened.
SELECT f.class, f.state, COUNT(*) AS findings, MIN(f.first_seen) AS first_seen
FROM sqlwriter.finding AS f
WHERE f.sys_name = @sys_name AND f.state IN ('open', 'accepted')
GROUP BY f.state, f.class
ORDER BY f.class;
GO
-- findings_insert
DECLARE @run nvarchar(64);
DECLARE @rows nvarchar(max);
DECLARE @most bigint;
DECLARE @sys_name nvarchar(256);
DECLARE @class varchar(40);
-- Adds findings of a class that a run saw and that have no row, while the class has room. A row of @rows: line,
-- key, class, environment, row hash, detail, mend, document.
SET XACT_ABORT ON;
SET LOCK_TIMEOUT 5000;
INSERT INTO sqlwriter.finding (
    sys_name, class, detail_id, document_key, document_id, state, first_seen, last_seen, run_id, row_hash, detail, mend
)
SELECT
    n.listed_sys, n.listed_class, n.listed_line, n.listed_key, n.listed_document, 'open',
    SYSUTCDATETIME(), SYSUTCDATETIME(), @run, n.listed_hash, n.listed_detail, n.listed_mend
FROM (
    SELECT
        l.listed_sys, l.listed_class, l.listed_line, l.listed_key, l.listed_hash, l.listed_detail, l.listed_mend,
        l.listed_document, ROW_NUMBER() OVER (ORDER BY l.listed_line, l.listed_key) AS place
    FROM
        OPENJSON (@rows) WITH (
            listed_line bigint '$[0]',
            listed_key char(64) '$[1]',
            listed_class varchar(40) '$[2]',
            listed_sys nvarchar(256) '$[3]',
            listed_hash varchar(128) '$[4]',
            listed_detail nvarchar(1000) '$[5]',
            listed_mend varchar(10) '$[6]',
            listed_document nvarchar(1023) '$[7]'
        ) AS l
    WHERE NOT EXISTS (
        SELECT 1 FROM sqlwriter.finding AS x
        WHERE
            x.sys_name = l.listed_sys COLLATE Latin1_General_BIN2 AND x.class = l.listed_class COLLATE Latin1_General_BIN2
            AND x.detail_id = l.listed_line AND x.document_key = l.listed_key COLLATE Latin1_General_BIN2
    )
) AS n
WHERE
    n.place <= @most - (
        SELECT COUNT(*) FROM sqlwriter.finding AS o
        WHERE o.sys_name = @sys_name AND o.state = 'open' AND o.class = @class
    );
GO
-- findings_list
DECLARE @limit bigint;
DECLARE @sys_name nvarchar(256);
DECLARE @class varchar(40);
DECLARE @from bigint;
DECLARE @to bigint;
DECLARE @after varchar(64);
DECLARE @unqueued bigint;
DECLARE @mend varchar(10);
-- Findings of a class, by line and key. Of the line @from they have a key after @after.
SELECT TOP (@limit)
    f.detail_id, f.document_id, f.state, f.first_seen, f.last_seen, f.run_id, f.row_hash, f.detail, f.mend, f.queued_by,
    f.accepted_hash, f.accepted_by, f.why
FROM sqlwriter.finding AS f
WHERE
    f.sys_name = @sys_name AND f.class = @class
    AND f.detail_id >= @from AND f.detail_id <= @to AND (f.detail_id > @from OR f.document_key > @after)
    AND (@unqueued = 0 OR f.queued_by IS NULL) AND (@mend = '' OR f.mend = @mend)
ORDER BY f.detail_id, f.document_key;
GO
-- findings_list_by_state
DECLARE @limit bigint;
DECLARE @sys_name nvarchar(256);
DECLARE @class varchar(40);
DECLARE @state varchar(10);
DECLARE @from bigint;
DECLARE @to bigint;
DECLARE @after varchar(64);
DECLARE @unqueued bigint;
DECLARE @mend varchar(10);
-- Findings of a class and a state, by line and key. Of the line @from they have a key after @after.
SELECT TOP (@limit)
    f.detail_id, f.document_id, f.state, f.first_seen, f.last_seen, f.run_id, f.row_hash, f.detail, f.mend, f.queued_by,
    f.accepted_hash, f.accepted_by, f.why
FROM sqlwriter.finding AS f
WHERE
    f.sys_name = @sys_name AND f.class = @class AND f.state = @state
    AND f.detail_id >= @from AND f.detail_id <= @to AND (f.detail_id > @from OR f.document_key > @after)
    AND (@unqueued = 0 OR f.queued_by IS NULL) AND (@mend = '' OR f.mend = @mend)
ORDER BY f.detail_id, f.document_key;
GO
-- findings_open
DECLARE @rows nvarchar(max);
DECLARE @most bigint;
DECLARE @sys_name nvarchar(256);
DECLARE @class varchar(40);
-- Opens known findings of a class that a run saw and that are not open, while the class has room. A row of @rows:
-- line, key, class, environment, row hash.
SET XACT_ABORT ON;
SET LOCK_TIMEOUT 5000;
UPDATE f
SET state = 'open', first_seen = SYSUTCDATETIME(), queued_by = NULL
FROM (
    SELECT
        l.listed_sys, l.listed_class, l.listed_line, l.listed_key,
        ROW_NUMBER() OVER (ORDER BY l.listed_line, l.listed_key) AS place
    FROM
        OPENJSON (@rows) WITH (
            listed_line bigint '$[0]',
            listed_key char(64) '$[1]',
            listed_class varchar(40) '$[2]',
            listed_sys nvarchar(256) '$[3]',
            listed_hash varchar(128) '$[4]'
        ) AS l
    INNER JOIN sqlwriter.finding AS x
        ON
            x.sys_name = l.listed_sys COLLATE Latin1_General_BIN2 AND x.class = l.listed_class COLLATE Latin1_General_BIN2
            AND x.detail_id = l.listed_line AND x.document_key = l.listed_key COLLATE Latin1_General_BIN2
    WHERE x.state = 'gone' OR (x.state = 'accepted' AND x.accepted_hash <> l.listed_hash COLLATE Latin1_General_BIN2)
) AS n
CROSS JOIN sqlwriter.finding AS f
WHERE
    f.sys_name = n.listed_sys COLLATE Latin1_General_BIN2 AND f.class = n.listed_class COLLATE Latin1_General_BIN2
    AND f.detail_id = n.listed_line AND f.document_key = n.listed_key COLLATE Latin1_General_BIN2
    AND f.state <> 'open' AND n.place <= @most - (
        SELECT COUNT(*) FROM sqlwriter.finding AS o
        WHERE o.sys_name = @sys_name AND o.state = 'open' AND o.class = @class
    )
OPTION (LOOP JOIN, FORCE ORDER);
GO
-- findings_queued
DECLARE @by nvarchar(256);
DECLARE @rows nvarchar(max);
-- Names the run that was started to mend open findings, where none is named. A row of @rows: line, key,
-- class, environment.
SET XACT_ABORT ON;
SET LOCK_TIMEOUT 5000;
UPDATE f
SET queued_by = @by
FROM
    OPENJSON (@rows) WITH (
        listed_line bigint '$[0]',
        listed_key char(64) '$[1]',
        listed_class varchar(40) '$[2]',
        listed_sys nvarchar(256) '$[3]'
    ) AS n
CROSS JOIN sqlwriter.finding AS f
WHERE
    f.sys_name = n.listed_sys COLLATE Latin1_General_BIN2 AND f.class = n.listed_class COLLATE Latin1_General_BIN2
    AND f.detail_id = n.listed_line AND f.document_key = n.listed_key COLLATE Latin1_General_BIN2
    AND f.state = 'open' AND f.queued_by IS NULL
OPTION (LOOP JOIN, FORCE ORDER);
GO
-- findings_see
DECLARE @run nvarchar(64);
DECLARE @rows nvarchar(max);
-- Says of findings that are not gone what a run saw. A row of @rows: line, key, class, environment, row
-- hash, detail, mend.
SET XACT_ABORT ON;
SET LOCK_TIMEOUT 5000;
UPDATE f
SET
    last_seen = SYSUTCDATETIME(), run_id = @run, row_hash = n.listed_hash, detail = n.listed_detail, mend = n.listed_mend
FROM
    OPENJSON (@rows) WITH (
        listed_line bigint '$[0]',
        listed_key char(64) '$[1]',
        listed_class varchar(40) '$[2]',
        listed_sys nvarchar(256) '$[3]',
        listed_hash varchar(128) '$[4]',
        listed_detail nvarchar(1000) '$[5]',
        listed_mend varchar(10) '$[6]'
    ) AS n
CROSS JOIN sqlwriter.finding AS f
WHERE
    f.sys_name = n.listed_sys COLLATE Latin1_General_BIN2 AND f.class = n.listed_class COLLATE Latin1_General_BIN2
    AND f.detail_id = n.listed_line AND f.document_key = n.listed_key COLLATE Latin1_General_BIN2
    AND f.state <> 'gone'
OPTION (LOOP JOIN, FORCE ORDER);
GO
-- last_completed
DECLARE @limit bigint;
DECLARE @kind nvarchar(40);
DECLARE @sys_name nvarchar(256);
-- The last run of a kind that completed and named no documents.
SELECT TOP (@limit) r.run_id, r.started_at
FROM sqlwriter.run AS r
WHERE r.kind = @kind AND r.sys_name = @sys_name AND r.status = 'completed' AND r.named_count = 0
ORDER BY r.run_number DESC;
GO
-- run_waits
DECLARE @sys_name nvarchar(256);
DECLARE @kind nvarchar(40);
DECLARE @run nvarchar(64);
DECLARE @follows nvarchar(64);
-- One row if an older run of the kind is running, or the run @follows.
SELECT 1 AS waits
WHERE
    EXISTS (
        SELECT 1 FROM sqlwriter.run AS r
        WHERE
            r.status = 'running' AND r.sys_name = @sys_name AND r.kind = @kind
            AND r.run_number < (SELECT x.run_number FROM sqlwriter.run AS x WHERE x.run_id = @run)
    )
    OR EXISTS (SELECT 1 FROM sqlwriter.run AS r WHERE r.run_id = @follows AND r.status = 'running');
GO
