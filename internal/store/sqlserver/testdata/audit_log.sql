-- audit_insert
DECLARE @sys_name nvarchar(2000);
DECLARE @action nvarchar(2000);
DECLARE @by nvarchar(2000);
DECLARE @why nvarchar(2000);
DECLARE @subject nvarchar(2000);
DECLARE @detail nvarchar(max);
DECLARE @level varchar(64);
DECLARE @run varchar(64);
DECLARE @batch varchar(64);
-- Adds an entry to the audit log. The time is the database's.
SET XACT_ABORT ON;
SET LOCK_TIMEOUT 5000;
EXEC sqlwriter.audit_add
    @sys_name = @sys_name, @action = @action, @by = @by, @why = @why, @subject = @subject, @detail = @detail,
    @level = @level, @run = @run, @batch = @batch;
GO
-- audits
DECLARE @limit bigint;
DECLARE @sys_name nvarchar(2000);
DECLARE @before bigint;
-- The latest entries of an environment, newest first.
SELECT TOP (@limit)
    a.audit_id, a.done_at, a.level, a.action, a.done_by, a.why, a.subject, a.run_id, a.batch_id, a.detail
FROM sqlwriter.audit_log AS a
WHERE
    a.sys_name = @sys_name AND a.audit_id < @before
ORDER BY a.audit_id DESC;
GO
-- audits_notable
DECLARE @limit bigint;
DECLARE @sys_name nvarchar(2000);
DECLARE @before bigint;
-- The latest notable entries of an environment, newest first.
SELECT TOP (@limit)
    a.audit_id, a.done_at, a.level, a.action, a.done_by, a.why, a.subject, a.run_id, a.batch_id, a.detail
FROM sqlwriter.audit_log AS a
WHERE
    a.sys_name = @sys_name AND a.audit_id < @before
    AND (
        a.level IS NULL OR a.level IN ('WARN', 'ERROR')
        OR a.action IN ('RUN_START', 'RUN_CANCEL', 'RUN_RESUME', 'BATCH_REQUEUE', 'COMPARE_START')
    )
ORDER BY a.audit_id DESC;
GO
-- audits_notable_of_run
DECLARE @limit bigint;
DECLARE @sys_name nvarchar(2000);
DECLARE @before bigint;
DECLARE @run varchar(64);
-- The latest notable entries of an environment, about one run, newest first.
SELECT TOP (@limit)
    a.audit_id, a.done_at, a.level, a.action, a.done_by, a.why, a.subject, a.run_id, a.batch_id, a.detail
FROM sqlwriter.audit_log AS a
WHERE
    a.sys_name = @sys_name AND a.audit_id < @before
    AND a.done_at >= COALESCE((SELECT r.started_at FROM sqlwriter.run AS r WHERE r.run_id = @run), '0001-01-01')
    AND a.run_id = @run
    AND (
        a.level IS NULL OR a.level IN ('WARN', 'ERROR')
        OR a.action IN ('RUN_START', 'RUN_CANCEL', 'RUN_RESUME', 'BATCH_REQUEUE', 'COMPARE_START')
    )
ORDER BY a.audit_id DESC;
GO
-- audits_of_action
DECLARE @limit bigint;
DECLARE @sys_name nvarchar(2000);
DECLARE @action nvarchar(2000);
DECLARE @before bigint;
-- The latest entries of an environment, of one action, newest first.
SELECT TOP (@limit)
    a.audit_id, a.done_at, a.level, a.action, a.done_by, a.why, a.subject, a.run_id, a.batch_id, a.detail
FROM sqlwriter.audit_log AS a
WHERE
    a.sys_name = @sys_name AND a.action = @action AND a.audit_id < @before
ORDER BY a.audit_id DESC;
GO
-- audits_of_action_of_run
DECLARE @limit bigint;
DECLARE @sys_name nvarchar(2000);
DECLARE @action nvarchar(2000);
DECLARE @before bigint;
DECLARE @run varchar(64);
-- The latest entries of an environment, of one action, about one run, newest first.
SELECT TOP (@limit)
    a.audit_id, a.done_at, a.level, a.action, a.done_by, a.why, a.subject, a.run_id, a.batch_id, a.detail
FROM sqlwriter.audit_log AS a
WHERE
    a.sys_name = @sys_name AND a.action = @action AND a.audit_id < @before
    AND a.run_id = @run
ORDER BY a.audit_id DESC;
GO
-- audits_of_run
DECLARE @limit bigint;
DECLARE @sys_name nvarchar(2000);
DECLARE @before bigint;
DECLARE @run varchar(64);
-- The latest entries of an environment, about one run, newest first.
SELECT TOP (@limit)
    a.audit_id, a.done_at, a.level, a.action, a.done_by, a.why, a.subject, a.run_id, a.batch_id, a.detail
FROM sqlwriter.audit_log AS a
WHERE
    a.sys_name = @sys_name AND a.audit_id < @before
    AND a.done_at >= COALESCE((SELECT r.started_at FROM sqlwriter.run AS r WHERE r.run_id = @run), '0001-01-01')
    AND a.run_id = @run
ORDER BY a.audit_id DESC;
GO
-- marks
DECLARE @sys_name nvarchar(2000);
DECLARE @rows nvarchar(max);
-- Who said that documents were repaired by hand, oldest first. A row of @rows: document.
SELECT a.subject, a.done_at, a.done_by, a.why, a.detail
FROM sqlwriter.audit_log AS a
WHERE
    a.sys_name = @sys_name AND a.action = 'mark-committed'
    AND a.subject IN (SELECT n.listed_document FROM OPENJSON (@rows) WITH (
        listed_document nvarchar(1023) '$[0]'
    ) AS n)
ORDER BY a.audit_id;
GO
