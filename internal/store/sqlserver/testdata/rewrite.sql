-- Made by sqlwriterctl migrate up, one set for each build and settings file (sqlwriter.procedure_set).
CREATE PROCEDURE sqlwriter.rewrite_hash
    @request nvarchar(max),
    @hashes varbinary(max),
    @expected int,
    @marks int,
    @twice bit,
    @sys_name nvarchar(256),
    @database_id varchar(36),
    @number bigint,
    @one_writer bit,
    @releases nvarchar(max)
AS
BEGIN
    -- begin
    -- Guarantees: an error ends the whole request and undoes it. A wait for a lock is bounded. In a deadlock the
    -- user's own programs win.
    SET NOCOUNT ON;
    SET XACT_ABORT ON;
    SET LOCK_TIMEOUT 5000;
    SET DEADLOCK_PRIORITY LOW;
    -- variables
    -- The sender counts the lines (@expected) and those of failure marks (@marks). @twice is 1 if two documents
    -- have the same line.
    -- With @expected = 0 the statements that write content run on no row, so that each still requires its rights
    -- (deploy/sql/check_rights.sql).
    DECLARE @write_id uniqueidentifier = NEWID();
    DECLARE @rows int, @missing int, @winners int, @stamped int = 0, @changed int, @content int, @written int;
    DECLARE @note nvarchar(4000);
    -- database
    -- Guarantees: nothing is written to a restored or replaced database. The heartbeat must have the id, and at
    -- least the number, that the control document has. NOLOCK avoids a wait for a heartbeat in progress. The sender
    -- reads number and id from the message.
    IF @number > 0
        BEGIN
            DECLARE @there bigint, @there_id varchar(36);
            SELECT
                @there = h.number,
                @there_id = LOWER(CAST(h.database_id AS varchar(36)))
            FROM sqlwriter.heartbeat AS h WITH (NOLOCK)
            WHERE h.sys_name = @sys_name;
            SET @note = CONCAT(N'sqlwriter: heartbeat ', @there, N' ', @there_id);
            IF @there_id IS NULL OR @there_id <> COALESCE(@database_id, '')
                THROW 52746, @note, 1;
            IF @there < @number
                THROW 52745, @note, 1;
        END;
    -- load
    -- Guarantees: every line of the request is staged once with the values of its document. The order is that of
    -- the lines, which is then the usual order of locks.
    -- Texts and numbers are wider here than in the user's columns, so that the user's column refuses a value that
    -- is too wide. A narrower type would cut it silently.
    -- @request is {"items": [[number, id, key, version, source_ts, hash, hash version, mark, leave since, its values] ...],
    -- "lines": [[detail id, item's number, position, the two row hashes, the values that differ from line to line] ...]}.
    -- Key and hashes are places in @hashes, which has 32 bytes for each.
    -- In a rewrite a line has four more members: the verdict if it is left alone, whether it keeps its status, and the
    -- fingerprints of its two rows (rewrite_read.sql).
    SELECT
        r.detail_id, r.doc, r.position,
        CAST(SUBSTRING(@hashes, 32 * r.detail_row_hash + 1, 32) AS binary(32)) AS detail_row_hash,
        CAST(SUBSTRING(@hashes, 32 * r.tracking_row_hash + 1, 32) AS binary(32)) AS tracking_row_hash, 0 AS missing,
        CASE WHEN r.verdict IS NULL THEN 1 ELSE 0 END AS winner, COALESCE(r.verdict, 'applied') AS verdict,
        r.keep_status, r.detail_seen, r.tracking_seen,
        CAST(NULL AS nvarchar(1023)) AS holder, CAST(NULL AS bigint) AS holder_us, CAST(NULL AS binary(32)) AS holder_key,
        i.document_id, CAST(SUBSTRING(@hashes, 32 * i.document_key + 1, 32) AS binary(32)) AS document_key, i.version_us,
        i.source_ts, CAST(SUBSTRING(@hashes, 32 * i.content_hash + 1, 32) AS binary(32)) AS content_hash, i.hash_version,
        i.mark, i.leave_since,
        i.d0,
        i.d1,
        i.d2,
        i.d3,
        i.d4,
        i.d5,
        i.d6,
        i.d7,
        i.d8,
        i.d9,
        i.d10,
        i.d11,
        i.d12,
        i.d13,
        i.d14,
        i.d15,
        i.d16,
        i.d17,
        i.d18,
        r.l0,
        r.l1
    INTO #line
    FROM
        OPENJSON (@request, '$.lines') WITH (
            detail_id bigint '$[0]',
            doc int '$[1]',
            position int '$[2]',
            detail_row_hash int '$[3]',
            tracking_row_hash int '$[4]',
            l0 bigint '$[5]',
            l1 nvarchar(2) '$[6]',
            verdict varchar(14) '$[7]',
            keep_status int '$[8]',
            detail_seen bigint '$[9]',
            tracking_seen bigint '$[10]'
        ) AS r
    INNER HASH JOIN
        OPENJSON (@request, '$.items') WITH (
            doc int '$[0]',
            document_id nvarchar(1024) '$[1]',
            document_key int '$[2]',
            version_us bigint '$[3]',
            source_ts bigint '$[4]',
            content_hash int '$[5]',
            hash_version int '$[6]',
            mark int '$[7]',
            leave_since bigint '$[8]',
            d0 nvarchar(256) '$[9]',
            d1 nvarchar(101) '$[10]',
            d2 nvarchar(11) '$[11]',
            d3 nvarchar(21) '$[12]',
            d4 nvarchar(51) '$[13]',
            d5 nvarchar(1001) '$[14]',
            d6 nvarchar(21) '$[15]',
            d7 nvarchar(2) '$[16]',
            d8 nvarchar(2001) '$[17]',
            d9 decimal(38, 12) '$[18]',
            d10 decimal(38, 12) '$[19]',
            d11 decimal(38, 12) '$[20]',
            d12 nvarchar(51) '$[21]',
            d13 nvarchar(51) '$[22]',
            d14 nvarchar(51) '$[23]',
            d15 nvarchar(51) '$[24]',
            d16 datetime2(7) '$[25]',
            d17 datetime2(7) '$[26]',
            d18 datetime2(7) '$[27]'
        ) AS i
        ON i.doc = r.doc
    ORDER BY r.detail_id, r.doc;
    SET @rows = @@ROWCOUNT;
    SET @winners = @rows;
    IF @rows <> @expected
        BEGIN
            SET @note = CONCAT(N'sqlwriter: expected ', @expected, N' lines, found ', @rows);
            THROW 52741, @note, 1;
        END;
    -- read_existing
    -- Guarantees: the number of lines without a detail row is known; we never add one. The read takes no lasting
    -- lock, and the row counts detect later changes.
    -- Every line is still a winner here. The condition gives optimizers that ignore the hint a small estimate.
    SELECT @missing = COUNT(*)
    FROM #line AS s
    WHERE s.winner = 1 AND NOT EXISTS (SELECT 1 FROM [dbo].[IVCE_DTL] AS d WHERE d.[IVCE_DTL_UID] = s.detail_id)
    OPTION (LOOP JOIN, FORCE ORDER);
    -- prune
    -- Guarantees: a document with a missing line is left out; a failure mark leaves out that line only. Each line
    -- has one winner among the remaining documents. The winner is the newest by (version, document key, source_ts),
    -- then the later item. A line that a rewrite leaves alone is no winner, and keeps its verdict.
    -- Skipped if every line exists and occurs once, because each line is then its own winner.
    IF @missing > 0 OR @twice = 1
        BEGIN
            UPDATE s
            SET missing = 1
            FROM #line AS s
            WHERE NOT EXISTS (SELECT 1 FROM [dbo].[IVCE_DTL] AS d WHERE d.[IVCE_DTL_UID] = s.detail_id)
            OPTION (LOOP JOIN, FORCE ORDER);
            UPDATE s
            SET
                winner = CASE WHEN o.place = 1 AND o.left_out = 0 AND s.verdict = 'applied' THEN 1 ELSE 0 END,
                verdict = CASE WHEN o.missing = 1 THEN 'missing' WHEN o.left_out = 1 THEN '' ELSE s.verdict END
            FROM #line AS s
            INNER JOIN (
                SELECT
                    c.detail_id, c.doc, c.missing, c.left_out,
                    ROW_NUMBER() OVER (
                        PARTITION BY c.detail_id, c.left_out, c.verdict
                        ORDER BY c.version_us DESC, c.document_key DESC, c.source_ts DESC, c.doc DESC
                    ) AS place
                FROM (
                    SELECT
                        b.detail_id, b.doc, b.missing, b.verdict, b.version_us, b.document_key, b.source_ts,
                        CASE WHEN b.mark = 1 THEN b.missing ELSE MAX(b.missing) OVER (PARTITION BY b.doc) END AS left_out
                    FROM #line AS b
                ) AS c
            ) AS o ON o.detail_id = s.detail_id AND o.doc = s.doc;
            SELECT @winners = COALESCE(SUM(s.winner), 0)
            FROM #line AS s;
        END;
    -- transaction
    -- Guarantees: all or nothing after any error. With XACT_ABORT alone a RAISERROR of a user's trigger would not
    -- end the transaction, and the earlier statements would be committed.
    BEGIN TRY
        BEGIN TRANSACTION;
        -- one_writer
        -- Guarantees: with @one_writer one such transaction is under way at a time (ONE_WRITER). The lock ends with the
        -- transaction, also when its session dies. It comes before all other locks, so nobody waits for it with one.
        IF @one_writer = 1
            BEGIN
                DECLARE @granted int;
                EXEC @granted = sp_getapplock
                    @Resource = N'sqlwriter.one_writer', @LockMode = N'Exclusive', @LockOwner = N'Transaction',
                    @LockTimeout = 5000;
                IF @granted < -3 -- -1 to -3: not in time, cancelled, a deadlock's victim
                    BEGIN
                        SET @note = CONCAT(N'sqlwriter: the lock call is wrong: sp_getapplock answered ', @granted);
                        THROW 52750, @note, 1;
                    END;
                IF @granted < 0
                    BEGIN
                        SET @note = CONCAT(N'sqlwriter: another writer has its turn: sp_getapplock answered ', @granted);
                        THROW 52748, @note, 1;
                    END;
            END;
        -- ledger_update
        -- Guarantees (newest wins): only a newer document, or the same one, replaces a ledger row. The same document
        -- needs a snapshot that is not older, and another content than the ledger has as written.
        -- A rewrite also takes the same content, and an older one where a release names the ledger's row. A failure mark
        -- skips lines that have, or may have, the content that failed.
        -- The guard is part of the writing statement and compares only the target's columns with the staged line, so it
        -- needs no lock hint.
        UPDATE l
        SET
            version_us = s.version_us,
            document_key = s.document_key,
            document_id = s.document_id,
            source_ts = s.source_ts,
            content_hash = CASE WHEN s.mark = 1 THEN NULL ELSE s.content_hash END,
            hash_version = CASE WHEN s.mark = 1 THEN NULL ELSE s.hash_version END,
            sys_name = @sys_name,
            detail_row_hash = s.detail_row_hash,
            tracking_row_hash = s.tracking_row_hash,
            outcome = CASE WHEN s.mark = 1 THEN 'failed' ELSE 'applied' END,
            write_id = @write_id,
            applied_at = SYSUTCDATETIME()
        FROM #line AS s
        INNER JOIN [sqlwriter].[ledger] AS l ON l.detail_id = s.detail_id
        WHERE
            s.winner = 1
            AND (
                (l.version_us < s.version_us OR (l.version_us = s.version_us AND l.document_key < s.document_key))
                OR (
                    l.version_us = s.version_us AND l.document_key = s.document_key AND l.source_ts <= s.source_ts
                    AND (
                        s.mark = 0
                        OR l.content_hash IS NULL
                        OR (l.hash_version = s.hash_version AND l.content_hash <> s.content_hash)
                        OR (
                            s.mark = 0 AND l.hash_version <> s.hash_version AND l.source_ts < s.source_ts
                            AND l.source_ts < s.leave_since
                            AND DATEDIFF_BIG(SECOND, '1970-01-01', l.applied_at) < s.leave_since
                        )
                    )
                )
                OR s.doc IN (
                    SELECT p.doc
                    FROM
                        OPENJSON (@releases) WITH (
                            detail_id bigint '$[0]',
                            doc int '$[1]',
                            document_key int '$[2]',
                            write_id varchar(36) '$[3]',
                            source_ts bigint '$[4]'
                        ) AS p
                    WHERE
                        p.detail_id = l.detail_id
                        AND CAST(SUBSTRING(@hashes, 32 * p.document_key + 1, 32) AS binary(32)) = l.document_key
                        AND p.write_id = LOWER(CAST(l.write_id AS varchar(36))) AND p.source_ts = l.source_ts
                )
            )
        OPTION (LOOP JOIN, FORCE ORDER);
        SET @stamped = @@ROWCOUNT;
        -- ledger_insert
        -- Guarantees: a line without a ledger row gets one, stamped with this write. A row that appeared since
        -- ledger_update.sql stays; the verdict then finds no evidence for this write.
        IF @stamped < @winners OR @expected = 0
            BEGIN
                INSERT INTO [sqlwriter].[ledger] (
                    detail_id, version_us, document_key, document_id, source_ts, content_hash, hash_version, sys_name,
                    detail_row_hash, tracking_row_hash, outcome, write_id, applied_at
                )
                SELECT
                    s.detail_id, s.version_us, s.document_key, s.document_id, s.source_ts,
                    CASE WHEN s.mark = 1 THEN NULL ELSE s.content_hash END,
                    CASE WHEN s.mark = 1 THEN NULL ELSE s.hash_version END,
                    @sys_name, s.detail_row_hash, s.tracking_row_hash,
                    CASE WHEN s.mark = 1 THEN 'failed' ELSE 'applied' END, @write_id, SYSUTCDATETIME()
                FROM #line AS s
                WHERE s.winner = 1 AND NOT EXISTS (SELECT 1 FROM [sqlwriter].[ledger] AS l WHERE l.detail_id = s.detail_id)
                ORDER BY s.detail_id
                OPTION (LOOP JOIN, FORCE ORDER);
                SET @stamped = @stamped + @@ROWCOUNT;
            END;
        -- ledger_raise
        -- Guarantees: a later snapshot of the same content raises source_ts and changes nothing else. A snapshot
        -- between the two can then not restore older content. Skipped if this write stamped every winner.
        IF @stamped < @winners
            BEGIN
                UPDATE l
                SET source_ts = s.source_ts
                FROM #line AS s
                INNER JOIN [sqlwriter].[ledger] AS l ON l.detail_id = s.detail_id
                WHERE
                    s.winner = 1
                    AND l.document_key = s.document_key
                    AND l.outcome IN ('applied', 'adopted')
                    AND l.content_hash = s.content_hash
                    AND l.hash_version = s.hash_version
                    AND l.source_ts < s.source_ts
                OPTION (LOOP JOIN, FORCE ORDER);
            END;
        -- verdict
        -- Guarantees: every verdict depends on the ledger after the write. A line without evidence of this write, this
        -- content or anything newer is a lost race; the whole request is undone and made again.
        -- Skipped if this write stamped as many ledger rows as the request has lines. A line is stamped at most once,
        -- so all are, and our locks keep others from changing them.
        -- A pruned line of the same document lost to a later item of this request, which may have been left alone.
        -- A percent sign is doubled, because THROW reads its message as a format.
        IF @stamped < @rows
            BEGIN
                UPDATE s
                SET
                    verdict = CASE
                        WHEN
                            l.write_id = @write_id AND l.document_key = s.document_key AND l.source_ts = s.source_ts
                            AND (
                                (s.mark = 1 AND l.content_hash IS NULL)
                                OR (s.mark = 0 AND l.content_hash = s.content_hash AND l.hash_version = s.hash_version)
                            )
                            THEN 'applied'
                        WHEN
                            l.document_key = s.document_key AND l.outcome IN ('applied', 'adopted')
                            AND l.content_hash = s.content_hash AND l.hash_version = s.hash_version
                            THEN 'unchanged'
                        WHEN
                            l.version_us = s.version_us AND l.document_key = s.document_key
                            AND l.hash_version <> s.hash_version
                            AND (
                                s.mark = 1
                                OR l.source_ts >= s.leave_since
                                OR DATEDIFF_BIG(SECOND, '1970-01-01', l.applied_at) >= s.leave_since
                            )
                            THEN 'not_comparable'
                        WHEN
                            l.version_us = s.version_us AND l.document_key = s.document_key
                            AND l.hash_version <> s.hash_version AND l.source_ts >= s.source_ts
                            THEN 'unchanged'
                        WHEN
                            l.version_us > s.version_us
                            OR (l.version_us = s.version_us AND l.document_key > s.document_key)
                            OR (
                                l.version_us = s.version_us AND l.document_key = s.document_key
                                AND (l.source_ts > s.source_ts OR s.winner = 0)
                            )
                            THEN 'superseded'
                        ELSE 'none'
                    END,
                    holder = l.document_id,
                    holder_us = l.version_us,
                    holder_key = l.document_key
                FROM #line AS s
                LEFT JOIN [sqlwriter].[ledger] AS l ON l.detail_id = s.detail_id
                WHERE s.verdict = 'applied'
                OPTION (LOOP JOIN, FORCE ORDER);
                SELECT @note = MIN(CONCAT(N'document ', LEFT(s.document_id, 900), N', line ', s.detail_id))
                FROM #line AS s
                WHERE s.verdict = 'none';
                IF @note IS NOT NULL
                    BEGIN
                        SET @note = REPLACE(CONCAT(N'sqlwriter: no evidence in the ledger: ', @note), N'%', N'%%');
                        THROW 52740, @note, 1;
                    END;
                SELECT @changed = COUNT(*), @marks = COALESCE(SUM(s.mark), 0)
                FROM #line AS s
                WHERE s.winner = 1 AND s.verdict = 'applied';
            END
        ELSE
            SET @changed = @rows;
        SET @content = @changed - @marks;
        -- detail_update
        -- Guarantees: the detail rows of all applied lines get every column of the mapping, or the request is undone.
        -- A column that keeps its value gets one where the document has one.
        -- A rewrite keeps a steward's status, and misses a row that was edited since it was read.
        IF @content > 0 OR @expected = 0
            BEGIN
                UPDATE d
                SET
                    [CLN_MFR_AI_NM] = s.d0,
                    [CLN_MFR_PRT_NUM] = s.d1,
                    [UNSPSC_CD] = s.d2,
                    [UPC_CD] = s.d3,
                    [AKS_PRT_NUM] = s.d4,
                    [ITM_AI_LDSC] = s.d5,
                    [IVCE_LNE_STAT] = CASE
                        WHEN s.keep_status = 1 THEN d.[IVCE_LNE_STAT]
                        ELSE s.d6 COLLATE DATABASE_DEFAULT
                    END,
                    [DATA_VRFN_IND] = s.d7,
                    [WEB_SRCH_URL] = s.d8,
                    [MFR_CNFDC_SCR] = s.d9,
                    [PRT_NUM_CNFDC_SCR] = s.d10,
                    [UNSPSC_CNFDC_SCR] = s.d11,
                    [AI_STG_NM] = s.d12,
                    [PRNT_IVCE_DTL_ID] = s.l0
                FROM #line AS s
                INNER JOIN [dbo].[IVCE_DTL] AS d ON d.[IVCE_DTL_UID] = s.detail_id
                WHERE
                    s.winner = 1 AND s.verdict = 'applied' AND s.mark = 0
                    AND CAST(SUBSTRING(HASHBYTES('SHA2_256', (
                        SELECT
                            d.[CLN_MFR_AI_NM] AS c0,
                            d.[CLN_MFR_PRT_NUM] AS c1,
                            d.[UNSPSC_CD] AS c2,
                            d.[UPC_CD] AS c3,
                            d.[AKS_PRT_NUM] AS c4,
                            d.[ITM_AI_LDSC] AS c5,
                            d.[IVCE_LNE_STAT] AS c6,
                            d.[DATA_VRFN_IND] AS c7,
                            d.[WEB_SRCH_URL] AS c8,
                            d.[MFR_CNFDC_SCR] AS c9,
                            d.[PRT_NUM_CNFDC_SCR] AS c10,
                            d.[UNSPSC_CNFDC_SCR] AS c11,
                            d.[AI_STG_NM] AS c12,
                            d.[PRNT_IVCE_DTL_ID] AS c13
                        FOR JSON PATH, INCLUDE_NULL_VALUES
                    )), 1, 8) AS bigint) = s.detail_seen
                OPTION (LOOP JOIN, FORCE ORDER);
                SET @written = @@ROWCOUNT;
                IF @written <> @content
                    BEGIN
                        SET @note = CONCAT(N'sqlwriter: IVCE_DTL: expected ', @content, N' rows written, found ', @written);
                        THROW 52743, @note, 1;
                    END;
            END;
        -- detail_mark
        -- Guarantees: a failure mark changes only the line status of its applied lines.
        IF @marks > 0
            BEGIN
                UPDATE d
                SET [IVCE_LNE_STAT] = N'AI-ERROR'
                FROM #line AS s
                INNER JOIN [dbo].[IVCE_DTL] AS d ON d.[IVCE_DTL_UID] = s.detail_id
                WHERE s.winner = 1 AND s.verdict = 'applied' AND s.mark = 1
                OPTION (LOOP JOIN, FORCE ORDER);
                SET @written = @@ROWCOUNT;
                IF @written <> @marks
                    BEGIN
                        SET @note = CONCAT(N'sqlwriter: IVCE_DTL: expected ', @marks, N' rows marked, found ', @written);
                        THROW 52741, @note, 1;
                    END;
            END;
        -- tracking_update
        -- Guarantees: existing tracking rows get every column of the mapping; one that keeps its
        -- value, where the document has one. Failure marks do not change this table.
        -- A rewrite keeps a steward's status, and misses a row that was edited since it was read.
        SET @written = 0;
        IF @content > 0 OR @expected = 0
            BEGIN
                UPDATE t
                SET
                    [CLN_MFR_AI_NM] = s.d0,
                    [CLN_MFR_PRT_NUM] = s.d1,
                    [UNSPSC_CD] = s.d2,
                    [UPC_CD] = s.d3,
                    [AKS_PRT_NUM] = s.d4,
                    [ITM_AI_LDSC] = s.d5,
                    [IVCE_LNE_STAT] = CASE
                        WHEN s.keep_status = 1 THEN t.[IVCE_LNE_STAT]
                        ELSE s.d6 COLLATE DATABASE_DEFAULT
                    END,
                    [MFR_CNFDC_SCR] = s.d9,
                    [PRT_NUM_CNFDC_SCR] = s.d10,
                    [UNSPSC_CNFDC_SCR] = s.d11,
                    [AI_STG_NM] = s.d12,
                    [MFR_STG_NM] = s.d13,
                    [PRT_NUM_STG_NM] = s.d14,
                    [UNSPSC_STG_NM] = s.d15,
                    [RQST_TS] = s.d16,
                    [PRCS_STRT_TS] = s.d17,
                    [PRCS_END_TS] = s.d18,
                    [DUP_IND] = s.l1,
                    [PRNT_IVCE_DTL_ID] = s.l0,
                    [DATA_VRFN_IND] = s.d7,
                    [WEB_SRCH_URL] = s.d8
                FROM #line AS s
                INNER JOIN [dbo].[IVCE_TRKG_MSTR] AS t ON t.[IVCE_DTL_UID] = s.detail_id
                WHERE
                    s.winner = 1 AND s.verdict = 'applied' AND s.mark = 0
                    AND CAST(SUBSTRING(HASHBYTES('SHA2_256', (
                        SELECT
                            t.[CLN_MFR_AI_NM] AS c0,
                            t.[CLN_MFR_PRT_NUM] AS c1,
                            t.[UNSPSC_CD] AS c2,
                            t.[UPC_CD] AS c3,
                            t.[AKS_PRT_NUM] AS c4,
                            t.[ITM_AI_LDSC] AS c5,
                            t.[IVCE_LNE_STAT] AS c6,
                            t.[MFR_CNFDC_SCR] AS c7,
                            t.[PRT_NUM_CNFDC_SCR] AS c8,
                            t.[UNSPSC_CNFDC_SCR] AS c9,
                            t.[AI_STG_NM] AS c10,
                            t.[MFR_STG_NM] AS c11,
                            t.[PRT_NUM_STG_NM] AS c12,
                            t.[UNSPSC_STG_NM] AS c13,
                            t.[RQST_TS] AS c14,
                            t.[PRCS_STRT_TS] AS c15,
                            t.[PRCS_END_TS] AS c16,
                            t.[DUP_IND] AS c17,
                            t.[PRNT_IVCE_DTL_ID] AS c18,
                            t.[DATA_VRFN_IND] AS c19,
                            t.[WEB_SRCH_URL] AS c20
                        FOR JSON PATH, INCLUDE_NULL_VALUES
                    )), 1, 8) AS bigint) = s.tracking_seen
                OPTION (LOOP JOIN, FORCE ORDER);
                SET @written = @@ROWCOUNT;
            END;
        -- tracking_insert
        -- Guarantees: an applied line without a tracking row gets one. Updated and inserted rows together must equal
        -- the applied lines. Neither count includes a row that another session adds in between, so the request is
        -- undone.
        IF @written < @content OR @expected = 0
            BEGIN
                INSERT INTO [dbo].[IVCE_TRKG_MSTR] (
                    [IVCE_DTL_UID],
                    [CLN_MFR_AI_NM],
                    [CLN_MFR_PRT_NUM],
                    [UNSPSC_CD],
                    [UPC_CD],
                    [AKS_PRT_NUM],
                    [ITM_AI_LDSC],
                    [IVCE_LNE_STAT],
                    [MFR_CNFDC_SCR],
                    [PRT_NUM_CNFDC_SCR],
                    [UNSPSC_CNFDC_SCR],
                    [AI_STG_NM],
                    [MFR_STG_NM],
                    [PRT_NUM_STG_NM],
                    [UNSPSC_STG_NM],
                    [RQST_TS],
                    [PRCS_STRT_TS],
                    [PRCS_END_TS],
                    [DUP_IND],
                    [PRNT_IVCE_DTL_ID],
                    [DATA_VRFN_IND],
                    [WEB_SRCH_URL]
                )
                SELECT
                    s.detail_id,
                    s.d0,
                    s.d1,
                    s.d2,
                    s.d3,
                    s.d4,
                    s.d5,
                    s.d6,
                    s.d9,
                    s.d10,
                    s.d11,
                    s.d12,
                    s.d13,
                    s.d14,
                    s.d15,
                    s.d16,
                    s.d17,
                    s.d18,
                    s.l1,
                    s.l0,
                    s.d7,
                    s.d8
                FROM #line AS s
                WHERE
                    s.winner = 1 AND s.verdict = 'applied' AND s.mark = 0
                    AND NOT EXISTS (SELECT 1 FROM [dbo].[IVCE_TRKG_MSTR] AS t WHERE t.[IVCE_DTL_UID] = s.detail_id)
                ORDER BY s.detail_id
                OPTION (LOOP JOIN, FORCE ORDER);
                SET @written = @written + @@ROWCOUNT;
            END;
        IF @written <> @content
            BEGIN
                SET @note = CONCAT(N'sqlwriter: IVCE_TRKG_MSTR: expected ', @content, N' rows written, found ', @written);
                THROW 52743, @note, 1;
            END;
        -- commit
        COMMIT TRANSACTION;
    END TRY
    BEGIN CATCH
        IF @@TRANCOUNT > 0
            ROLLBACK TRANSACTION;
        THROW;
    END CATCH;
    -- outcomes
    -- Guarantees: the first result has the number of lines and of stamped lines. Unless all are stamped, a second
    -- one has a row for each line, by item, main line first.
    SELECT @rows AS sqlwriter_lines, @stamped AS sqlwriter_stamped;
    IF @stamped < @rows
        SELECT
            s.doc AS sqlwriter_doc, s.position, s.verdict, s.winner,
            CASE WHEN s.verdict = 'superseded' THEN s.holder END AS holder,
            s.holder_us, s.holder_key
        FROM #line AS s
        ORDER BY s.doc, s.position;
END;
