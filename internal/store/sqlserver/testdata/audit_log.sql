-- audit_insert
DECLARE @sys_name nvarchar(256);
DECLARE @action nvarchar(40);
DECLARE @by nvarchar(256);
DECLARE @why nvarchar(2000);
DECLARE @subject nvarchar(1023);
DECLARE @detail nvarchar(max);
DECLARE @run nvarchar(64);
-- Adds an entry to the audit log. The time is the database's.
SET XACT_ABORT ON;
SET LOCK_TIMEOUT 5000;
INSERT INTO sqlwriter.audit_log (done_at, sys_name, action, done_by, why, subject, detail, run_id)
VALUES (SYSUTCDATETIME(), @sys_name, @action, @by, @why, @subject, NULLIF(@detail, ''), NULLIF(@run, ''));
GO
-- audits
DECLARE @limit bigint;
DECLARE @sys_name nvarchar(256);
DECLARE @before bigint;
-- The latest entries of an environment's audit log, newest first.
SELECT TOP (@limit)
    a.audit_id, a.done_at, a.level, a.action, a.done_by, a.why, a.subject, a.run_id, a.job_id, a.detail
FROM sqlwriter.audit_log AS a
WHERE a.sys_name = @sys_name AND a.audit_id < @before
ORDER BY a.audit_id DESC;
GO
-- audits_notable
DECLARE @limit bigint;
DECLARE @sys_name nvarchar(256);
DECLARE @before bigint;
-- The latest entries of the sorts below, newest first. Each sort is a range of an index.
SELECT TOP (@limit)
    a.audit_id, a.done_at, a.level, a.action, a.done_by, a.why, a.subject, a.run_id, a.job_id, a.detail
FROM (
    SELECT s.audit_id FROM (
        SELECT TOP (@limit) b.audit_id FROM sqlwriter.audit_log AS b
        WHERE
            b.level IS NULL
            AND b.sys_name = @sys_name AND b.audit_id < @before
        ORDER BY b.audit_id DESC
    ) AS s
    UNION ALL
    SELECT s.audit_id FROM (
        SELECT TOP (@limit) b.audit_id FROM sqlwriter.audit_log AS b
        WHERE
            b.level = 'WARN'
            AND b.sys_name = @sys_name AND b.audit_id < @before
        ORDER BY b.audit_id DESC
    ) AS s
    UNION ALL
    SELECT s.audit_id FROM (
        SELECT TOP (@limit) b.audit_id FROM sqlwriter.audit_log AS b
        WHERE
            b.level = 'ERROR'
            AND b.sys_name = @sys_name AND b.audit_id < @before
        ORDER BY b.audit_id DESC
    ) AS s
    UNION ALL
    SELECT s.audit_id FROM (
        SELECT TOP (@limit) b.audit_id FROM sqlwriter.audit_log AS b
        WHERE
            b.action = 'RUN_START' AND b.level = 'INFO'
            AND b.sys_name = @sys_name AND b.audit_id < @before
        ORDER BY b.audit_id DESC
    ) AS s
    UNION ALL
    SELECT s.audit_id FROM (
        SELECT TOP (@limit) b.audit_id FROM sqlwriter.audit_log AS b
        WHERE
            b.action = 'RUN_CANCEL' AND b.level = 'INFO'
            AND b.sys_name = @sys_name AND b.audit_id < @before
        ORDER BY b.audit_id DESC
    ) AS s
    UNION ALL
    SELECT s.audit_id FROM (
        SELECT TOP (@limit) b.audit_id FROM sqlwriter.audit_log AS b
        WHERE
            b.action = 'RUN_RESUME' AND b.level = 'INFO'
            AND b.sys_name = @sys_name AND b.audit_id < @before
        ORDER BY b.audit_id DESC
    ) AS s
    UNION ALL
    SELECT s.audit_id FROM (
        SELECT TOP (@limit) b.audit_id FROM sqlwriter.audit_log AS b
        WHERE
            b.action = 'BATCH_REQUEUE' AND b.level = 'INFO'
            AND b.sys_name = @sys_name AND b.audit_id < @before
        ORDER BY b.audit_id DESC
    ) AS s
    UNION ALL
    SELECT s.audit_id FROM (
        SELECT TOP (@limit) b.audit_id FROM sqlwriter.audit_log AS b
        WHERE
            b.action = 'COMPARE_START' AND b.level = 'INFO'
            AND b.sys_name = @sys_name AND b.audit_id < @before
        ORDER BY b.audit_id DESC
    ) AS s
) AS n
INNER JOIN sqlwriter.audit_log AS a ON a.audit_id = n.audit_id
ORDER BY n.audit_id DESC;
GO
-- audits_notable_of_run
DECLARE @limit bigint;
DECLARE @run nvarchar(64);
DECLARE @sys_name nvarchar(256);
DECLARE @before bigint;
-- The latest entries about one run of the sorts below, newest first. Each sort is a range of an index.
SELECT TOP (@limit)
    a.audit_id, a.done_at, a.level, a.action, a.done_by, a.why, a.subject, a.run_id, a.job_id, a.detail
FROM (
    SELECT s.audit_id FROM (
        SELECT TOP (@limit) b.audit_id FROM sqlwriter.audit_log AS b
        WHERE
            b.level IS NULL AND b.run_id = @run
            AND b.sys_name = @sys_name AND b.audit_id < @before
        ORDER BY b.audit_id DESC
    ) AS s
    UNION ALL
    SELECT s.audit_id FROM (
        SELECT TOP (@limit) b.audit_id FROM sqlwriter.audit_log AS b
        WHERE
            b.level = 'WARN' AND b.run_id = @run
            AND b.sys_name = @sys_name AND b.audit_id < @before
        ORDER BY b.audit_id DESC
    ) AS s
    UNION ALL
    SELECT s.audit_id FROM (
        SELECT TOP (@limit) b.audit_id FROM sqlwriter.audit_log AS b
        WHERE
            b.level = 'ERROR' AND b.run_id = @run
            AND b.sys_name = @sys_name AND b.audit_id < @before
        ORDER BY b.audit_id DESC
    ) AS s
    UNION ALL
    SELECT s.audit_id FROM (
        SELECT TOP (@limit) b.audit_id FROM sqlwriter.audit_log AS b
        WHERE
            b.action = 'RUN_START' AND b.level = 'INFO' AND b.run_id = @run
            AND b.sys_name = @sys_name AND b.audit_id < @before
        ORDER BY b.audit_id DESC
    ) AS s
    UNION ALL
    SELECT s.audit_id FROM (
        SELECT TOP (@limit) b.audit_id FROM sqlwriter.audit_log AS b
        WHERE
            b.action = 'RUN_CANCEL' AND b.level = 'INFO' AND b.run_id = @run
            AND b.sys_name = @sys_name AND b.audit_id < @before
        ORDER BY b.audit_id DESC
    ) AS s
    UNION ALL
    SELECT s.audit_id FROM (
        SELECT TOP (@limit) b.audit_id FROM sqlwriter.audit_log AS b
        WHERE
            b.action = 'RUN_RESUME' AND b.level = 'INFO' AND b.run_id = @run
            AND b.sys_name = @sys_name AND b.audit_id < @before
        ORDER BY b.audit_id DESC
    ) AS s
    UNION ALL
    SELECT s.audit_id FROM (
        SELECT TOP (@limit) b.audit_id FROM sqlwriter.audit_log AS b
        WHERE
            b.action = 'BATCH_REQUEUE' AND b.level = 'INFO' AND b.run_id = @run
            AND b.sys_name = @sys_name AND b.audit_id < @before
        ORDER BY b.audit_id DESC
    ) AS s
    UNION ALL
    SELECT s.audit_id FROM (
        SELECT TOP (@limit) b.audit_id FROM sqlwriter.audit_log AS b
        WHERE
            b.action = 'COMPARE_START' AND b.level = 'INFO' AND b.run_id = @run
            AND b.sys_name = @sys_name AND b.audit_id < @before
        ORDER BY b.audit_id DESC
    ) AS s
) AS n
INNER JOIN sqlwriter.audit_log AS a ON a.audit_id = n.audit_id
ORDER BY n.audit_id DESC;
GO
-- audits_of_action
DECLARE @limit bigint;
DECLARE @action nvarchar(40);
DECLARE @sys_name nvarchar(256);
DECLARE @before bigint;
-- The latest entries of one action in an environment's audit log, newest first.
SELECT TOP (@limit)
    a.audit_id, a.done_at, a.level, a.action, a.done_by, a.why, a.subject, a.run_id, a.job_id, a.detail
FROM sqlwriter.audit_log AS a
WHERE
    a.action = @action
    AND a.action = @action COLLATE Latin1_General_BIN2 -- narrows the rows of the index to an exact match
    AND a.sys_name = @sys_name
    AND a.audit_id < @before
ORDER BY a.audit_id DESC;
GO
-- audits_of_action_of_run
DECLARE @limit bigint;
DECLARE @action nvarchar(40);
DECLARE @run nvarchar(64);
DECLARE @sys_name nvarchar(256);
DECLARE @before bigint;
-- The latest entries of one action in an environment's audit log about one run, newest first.
SELECT TOP (@limit)
    a.audit_id, a.done_at, a.level, a.action, a.done_by, a.why, a.subject, a.run_id, a.job_id, a.detail
FROM sqlwriter.audit_log AS a
WHERE
    a.action = @action
    AND a.action = @action COLLATE Latin1_General_BIN2 -- narrows the rows of the index to an exact match
    AND a.run_id = @run
    AND a.sys_name = @sys_name
    AND a.audit_id < @before
ORDER BY a.audit_id DESC;
GO
-- audits_of_run
DECLARE @limit bigint;
DECLARE @run nvarchar(64);
DECLARE @sys_name nvarchar(256);
DECLARE @before bigint;
-- The latest entries about one run of the sorts below, newest first. Each sort is a range of an index.
SELECT TOP (@limit)
    a.audit_id, a.done_at, a.level, a.action, a.done_by, a.why, a.subject, a.run_id, a.job_id, a.detail
FROM (
    SELECT s.audit_id FROM (
        SELECT TOP (@limit) b.audit_id FROM sqlwriter.audit_log AS b
        WHERE
            b.level IS NULL AND b.run_id = @run
            AND b.sys_name = @sys_name AND b.audit_id < @before
        ORDER BY b.audit_id DESC
    ) AS s
    UNION ALL
    SELECT s.audit_id FROM (
        SELECT TOP (@limit) b.audit_id FROM sqlwriter.audit_log AS b
        WHERE
            b.level = 'WARN' AND b.run_id = @run
            AND b.sys_name = @sys_name AND b.audit_id < @before
        ORDER BY b.audit_id DESC
    ) AS s
    UNION ALL
    SELECT s.audit_id FROM (
        SELECT TOP (@limit) b.audit_id FROM sqlwriter.audit_log AS b
        WHERE
            b.level = 'ERROR' AND b.run_id = @run
            AND b.sys_name = @sys_name AND b.audit_id < @before
        ORDER BY b.audit_id DESC
    ) AS s
    UNION ALL
    SELECT s.audit_id FROM (
        SELECT TOP (@limit) b.audit_id FROM sqlwriter.audit_log AS b
        WHERE
            b.level = 'INFO' AND b.run_id = @run
            AND b.sys_name = @sys_name AND b.audit_id < @before
        ORDER BY b.audit_id DESC
    ) AS s
) AS n
INNER JOIN sqlwriter.audit_log AS a ON a.audit_id = n.audit_id
ORDER BY n.audit_id DESC;
GO
