-- Guarantees: at most @limit rows of one part of the environment are deleted, the oldest first, all older than
-- @before. Nothing of a running run goes, nor of a run whose documents a running one may still read. The last
-- comparison that completed stays: its beginning is where the next one begins.
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
                    AND JSON_VALUE(o.filter, '$.run') COLLATE Latin1_General_BIN2 = r.run_id
            )
            AND r.run_id <> COALESCE((
                SELECT TOP (1) c.run_id
                FROM sqlwriter.run AS c
                WHERE
                    c.kind = '{{.Comparing}}' AND c.sys_name = @sys_name AND c.status = 'completed'
                    AND c.named_count = 0
                ORDER BY c.run_number DESC
            ), N'')
        ORDER BY r.ended_at;
        UPDATE sqlwriter.run
        SET status = 'purged'
        WHERE run_id = @run AND ended_at < @before AND status <> 'running';
        IF @@ROWCOUNT = 1
            BEGIN
                DELETE TOP (@limit) FROM sqlwriter.job
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
IF @part = 'findings'
    BEGIN
        DELETE f
        FROM sqlwriter.finding AS f
        INNER JOIN (
            SELECT TOP (@limit)
                g.sys_name, g.class, g.detail_id, g.document_key
            FROM sqlwriter.finding AS g
            WHERE g.sys_name = @sys_name AND g.state = 'gone' AND g.last_seen < @before
            ORDER BY g.last_seen
        ) AS n
            ON
                n.sys_name = f.sys_name AND n.class = f.class AND n.detail_id = f.detail_id
                AND n.document_key = f.document_key
        WHERE f.state = 'gone'; -- still: a run may open it after the subquery has read it
        SET @rows = @@ROWCOUNT;
    END;
IF @part = 'audit_log'
    BEGIN
        DELETE FROM sqlwriter.audit_log
        WHERE audit_id IN (
            SELECT TOP (@limit) a.audit_id
            FROM sqlwriter.audit_log AS a
            WHERE a.sys_name = @sys_name AND a.done_at < @before
            ORDER BY a.done_at
        );
        SET @rows = @@ROWCOUNT;
    END;
