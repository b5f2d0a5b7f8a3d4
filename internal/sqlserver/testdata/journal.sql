-- audit_insert
DECLARE @action nvarchar(40);
DECLARE @by nvarchar(256);
DECLARE @why nvarchar(2000);
DECLARE @subject nvarchar(1023);
DECLARE @detail nvarchar(max);
-- One entry more in the audit log, by the database's clock.
SET XACT_ABORT ON;
SET LOCK_TIMEOUT 5000;
INSERT INTO sqlwriter.audit_log (done_at, action, done_by, why, subject, detail)
VALUES (SYSUTCDATETIME(), @action, @by, @why, @subject, NULLIF(@detail, ''));
GO
-- audits
DECLARE @limit bigint;
-- The latest entries of the audit log, newest first.
SELECT TOP (@limit)
    a.done_at, a.action, a.done_by, a.why, a.subject, a.detail
FROM sqlwriter.audit_log AS a
ORDER BY a.audit_id DESC;
GO
-- run_cancel
DECLARE @id nvarchar(64);
-- Asks a running run to end. Its heartbeat is its own.
SET XACT_ABORT ON;
SET LOCK_TIMEOUT 5000;
UPDATE sqlwriter.run
SET cancel = 1
WHERE run_id = @id AND status = 'running';
GO
-- run_end
DECLARE @status nvarchar(20);
DECLARE @counts nvarchar(max);
DECLARE @id nvarchar(64);
-- The last status of a run that has none yet: the first one stays.
SET XACT_ABORT ON;
SET LOCK_TIMEOUT 5000;
UPDATE sqlwriter.run
SET status = @status, counts = @counts, heartbeat_at = SYSUTCDATETIME(), ended_at = SYSUTCDATETIME()
WHERE run_id = @id AND status = 'running';
GO
-- run_insert
DECLARE @id nvarchar(64);
DECLARE @kind nvarchar(40);
DECLARE @filter nvarchar(max);
DECLARE @by nvarchar(256);
DECLARE @why nvarchar(2000);
DECLARE @counts nvarchar(max);
-- A new run. Its id is a key: a second one of the same id is an error.
SET XACT_ABORT ON;
SET LOCK_TIMEOUT 5000;
INSERT INTO sqlwriter.run (
    run_id, kind, filter, requested_by, why, status, cancel, counts, started_at, heartbeat_at
)
VALUES (
    @id, @kind, NULLIF(@filter, ''), @by, @why, 'running', 0, @counts, SYSUTCDATETIME(), SYSUTCDATETIME()
);
GO
-- run_progress
DECLARE @counts nvarchar(max);
DECLARE @id nvarchar(64);
-- The counts of a run that has not ended.
SET XACT_ABORT ON;
SET LOCK_TIMEOUT 5000;
UPDATE sqlwriter.run
SET counts = @counts, heartbeat_at = SYSUTCDATETIME()
WHERE run_id = @id AND status = 'running';
GO
-- run_wanted
DECLARE @id nvarchar(64);
-- Whether somebody asked to end a run.
SELECT r.cancel FROM sqlwriter.run AS r WHERE r.run_id = @id;
GO
-- runs
DECLARE @limit bigint;
-- The latest runs, newest first: their numbers grow, whatever the clock does.
SELECT TOP (@limit)
    r.run_id, r.kind, r.filter, r.requested_by, r.why, r.status, r.cancel, r.counts, r.started_at, r.ended_at
FROM sqlwriter.run AS r
ORDER BY r.run_number DESC;
GO
