-- Guarantees: at most @limit rows of one part of the environment are deleted, the oldest first, all older than
-- @before. Nothing of a running run goes, nor of a run whose documents a running one may still read. The last
-- comparison that ended well stays: its beginning is where the next one begins. The audit log goes by the days of
-- the administrator's row, whatever the caller says, and not at all without one. What a person said of repaired
-- lines stays: a document's outcome manual counts only with it.
-- A run is marked before its first row goes, so that nothing continues it, and its own row goes last. Its tables
-- are locked in the order of all transactions.
-- Each subquery reads the end of an index: the oldest rows cost the same however many there are.
IF @part = 'error_details'
    BEGIN
        DELETE FROM sqlwriter.error_detail
        WHERE error_id IN (
            SELECT TOP (@limit) e.error_id
            FROM sqlwriter.error_detail AS e
            WHERE
                e.sys_name = @sys_name AND e.created_at < @before
                AND NOT EXISTS (
                    SELECT 1 FROM sqlwriter.run AS r WHERE r.run_id = e.run_id AND r.status = 'running'
                )
            ORDER BY e.created_at
        );
        SET @rows = @@ROWCOUNT;
    END;
IF @part = 'runs'
    BEGIN
        SELECT TOP (1) @run = r.run_id
        FROM sqlwriter.run AS r
        WHERE
            r.sys_name = @sys_name AND r.ended_at < @before AND r.status <> 'running'
            AND NOT EXISTS (
                SELECT 1
                FROM sqlwriter.run AS o
                WHERE
                    o.status = 'running'
                    AND CAST(JSON_VALUE(o.filter, '$.run') AS varchar(64)) COLLATE Latin1_General_BIN2 = r.run_id
            )
        ORDER BY r.ended_at;
        UPDATE sqlwriter.run
        SET status = 'purged'
        WHERE run_id = @run AND ended_at < @before AND status <> 'running';
        IF @@ROWCOUNT = 1
            BEGIN
                DELETE TOP (@limit) FROM sqlwriter.batch
                WHERE run_id = @run;
                SET @rows = @@ROWCOUNT;
                DELETE TOP (@limit - @rows) FROM sqlwriter.batch_item
                WHERE run_id = @run;
                SET @rows = @rows + @@ROWCOUNT;
                DELETE TOP (@limit - @rows) FROM sqlwriter.worker
                WHERE status IN ('IDLE', 'RUNNING', 'COMPLETED', 'FAILED') AND run_id = @run;
                SET @rows = @rows + @@ROWCOUNT;
                DELETE TOP (@limit - @rows) FROM sqlwriter.run
                WHERE run_id = @run;
                SET @rows = @rows + @@ROWCOUNT;
            END;
    END;
IF @part = 'comparisons'
    BEGIN
        DELETE FROM sqlwriter.comparison
        WHERE sys_name = @sys_name AND comparison_id IN (
            SELECT TOP (@limit) o.comparison_id
            FROM sqlwriter.comparison AS o
            WHERE
                o.sys_name = @sys_name AND o.ended_at < @before
                AND o.comparison_id <> COALESCE((
                    SELECT TOP (1) c.comparison_id
                    FROM sqlwriter.comparison AS c
                    WHERE c.sys_name = @sys_name AND c.ended_at IS NOT NULL AND c.named = 0 AND c.error IS NULL
                    ORDER BY c.begun_at DESC, c.comparison_id DESC
                ), '')
            ORDER BY o.ended_at
        );
        SET @rows = @@ROWCOUNT;
    END;
IF @part = 'audit_log'
    BEGIN
        SET @before = (
            SELECT DATEADD(DAY, -k.kept_days, SYSUTCDATETIME())
            FROM sqlwriter.audit_retention AS k
            WHERE k.sys_name = @sys_name
        );
        DELETE FROM sqlwriter.audit_log
        WHERE audit_id IN (
            SELECT TOP (@limit) a.audit_id
            FROM sqlwriter.audit_log AS a
            WHERE a.sys_name = @sys_name AND a.done_at < @before AND a.action <> '{{.MarkCode}}'
            ORDER BY a.done_at
        );
        SET @rows = @@ROWCOUNT;
    END;
