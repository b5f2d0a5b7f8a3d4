-- Made by sqlwriterctl migrate up, one set for each build and settings file (sqlwriter.procedure_set).
CREATE PROCEDURE sqlwriter_preview.preview_hash
    @request nvarchar(max),
    @rewrite bit,
    @expected int,
    @marks int,
    @twice bit
AS
BEGIN
    -- begin
    -- Guarantees: one bad statement ends the whole request and undoes it; a lock that somebody holds costs a few
    -- seconds and not for ever; where two block each other the user's own programs win.
    SET NOCOUNT ON;
    SET XACT_ABORT ON;
    SET LOCK_TIMEOUT 5000;
    SET DEADLOCK_PRIORITY LOW;
    -- variables
    -- @expected is how many lines the request has, @marks how many of them are of failure marks, @twice whether some
    -- line is named by two documents: the sender knows. With @expected = 0 the statements that write
    -- content run all the same, each on no row, so that each still asks for its rights (deploy/sql/check_rights.sql).
    DECLARE @write_id uniqueidentifier = NEWID();
    DECLARE @rows int, @missing int, @winners int, @stamped int = 0, @changed int, @content int, @written int;
    DECLARE @note nvarchar(4000);
    -- load
    -- Guarantees: every line of the request is staged once, with the values of its document, in a table of the
    -- request's own and in the order of the lines (locks are then usually taken in it). Texts and numbers are wider
    -- here than in the user's columns: what is too wide is refused there instead of being cut here.
    -- @request is {"items": [[number, id, key, version, source_ts, hash, hash version, mark, its values] ...],
    -- "lines": [[detail id, item's number, position, row hash, the values that differ from line to line] ...]}.
    SELECT
        r.detail_id, r.doc, r.position, r.row_hash, 0 AS missing, 1 AS winner, CAST('applied' AS varchar(10)) AS verdict,
        CAST(NULL AS nvarchar(1023)) AS holder, CAST(NULL AS bigint) AS holder_us, CAST(NULL AS char(64)) AS holder_key,
        i.document_id, i.document_key COLLATE Latin1_General_BIN2 AS document_key, i.version_us, i.source_ts,
        i.content_hash COLLATE Latin1_General_BIN2 AS content_hash, i.hash_version, i.mark,
        i.[process_output.manufacturer_name],
        i.[process_output.part_number],
        i.[process_output.unspsc],
        i.[process_output.upc],
        i.[process_output.aks_part_number],
        i.[process_output.cleaned_description],
        i.[process_output.invoice_line_status],
        i.[process_output.data_verified],
        i.[process_output.web_search_url],
        i.[process_output.manufacturer_name_confidence],
        i.[process_output.part_number_confidence],
        i.[process_output.unspsc_confidence],
        i.[process_output.stage],
        i.[process_output.manufacturer_name_stage],
        i.[process_output.part_number_stage],
        i.[process_output.unspsc_stage],
        i.[request_time],
        i.[process_output.processing_started_at],
        i.[process_output.processing_completed_at],
        r.[parent],
        r.[duplicate]
    INTO #line
    FROM
        OPENJSON (@request, '$.lines') WITH (
            detail_id bigint '$[0]',
            doc int '$[1]',
            position int '$[2]',
            row_hash char(64) '$[3]',
            [parent] bigint '$[4]',
            [duplicate] nvarchar(2) '$[5]'
        ) AS r
    INNER HASH JOIN
        OPENJSON (@request, '$.items') WITH (
            doc int '$[0]',
            document_id nvarchar(1024) '$[1]',
            document_key char(64) '$[2]',
            version_us bigint '$[3]',
            source_ts bigint '$[4]',
            content_hash char(64) '$[5]',
            hash_version int '$[6]',
            mark int '$[7]',
            [process_output.manufacturer_name] nvarchar(256) '$[8]',
            [process_output.part_number] nvarchar(101) '$[9]',
            [process_output.unspsc] nvarchar(11) '$[10]',
            [process_output.upc] nvarchar(21) '$[11]',
            [process_output.aks_part_number] nvarchar(51) '$[12]',
            [process_output.cleaned_description] nvarchar(1001) '$[13]',
            [process_output.invoice_line_status] nvarchar(21) '$[14]',
            [process_output.data_verified] nvarchar(2) '$[15]',
            [process_output.web_search_url] nvarchar(2001) '$[16]',
            [process_output.manufacturer_name_confidence] decimal(38, 12) '$[17]',
            [process_output.part_number_confidence] decimal(38, 12) '$[18]',
            [process_output.unspsc_confidence] decimal(38, 12) '$[19]',
            [process_output.stage] nvarchar(51) '$[20]',
            [process_output.manufacturer_name_stage] nvarchar(51) '$[21]',
            [process_output.part_number_stage] nvarchar(51) '$[22]',
            [process_output.unspsc_stage] nvarchar(51) '$[23]',
            [request_time] datetime2(7) '$[24]',
            [process_output.processing_started_at] datetime2(7) '$[25]',
            [process_output.processing_completed_at] datetime2(7) '$[26]'
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
    -- preview_ledger
    -- Guarantees: the ledger rows that the request concerns, as they are, in a table of the request's own. A preview
    -- runs the statements of a write on this copy, so that what it foretells is decided by the same guards, and
    -- writes nothing.
    CREATE TABLE #ledger (
        detail_id bigint NOT NULL PRIMARY KEY,
        version_us bigint NOT NULL,
        document_key char(64) COLLATE Latin1_General_BIN2 NOT NULL,
        document_id nvarchar(1023) NOT NULL,
        source_ts bigint NOT NULL,
        content_hash char(64) COLLATE Latin1_General_BIN2 NULL,
        hash_version int NULL,
        row_hash char(64) COLLATE Latin1_General_BIN2 NULL,
        outcome varchar(10) COLLATE Latin1_General_BIN2 NOT NULL,
        write_id uniqueidentifier NOT NULL,
        applied_at datetime2(3) NOT NULL
    );
    INSERT INTO #ledger (
        detail_id, version_us, document_key, document_id, source_ts, content_hash, hash_version, row_hash, outcome,
        write_id, applied_at
    )
    SELECT
        l.detail_id, l.version_us, l.document_key, l.document_id, l.source_ts, l.content_hash, l.hash_version, l.row_hash,
        l.outcome, l.write_id, l.applied_at
    FROM (SELECT DISTINCT c.detail_id FROM #line AS c) AS s
    INNER JOIN [sqlwriter].[ledger] AS l ON l.detail_id = s.detail_id
    OPTION (LOOP JOIN, FORCE ORDER);
    -- read_existing
    -- Guarantees: it is known how many lines have no detail row (we never make one). This is read before anything is
    -- locked; what changes since is found by the counts.
    -- (Every line is a winner yet; saying so tells optimizers that ignore the hint how few there are.)
    SELECT @missing = COUNT(*)
    FROM #line AS s
    WHERE s.winner = 1 AND NOT EXISTS (SELECT 1 FROM [dbo].[IVCE_DTL] AS d WHERE d.[IVCE_DTL_UID] = s.detail_id)
    OPTION (LOOP JOIN, FORCE ORDER);
    -- prune
    -- Guarantees: a document with a missing line is out as a whole (a failure mark loses that line alone), and each
    -- line has one winner among the documents that are left: the newest by (version, document key, source_ts), the
    -- later item where those are equal. Skipped where every line exists and is named once: then each is its own
    -- winner.
    IF @missing > 0 OR @twice = 1
        BEGIN
            UPDATE s
            SET missing = 1
            FROM #line AS s
            WHERE NOT EXISTS (SELECT 1 FROM [dbo].[IVCE_DTL] AS d WHERE d.[IVCE_DTL_UID] = s.detail_id)
            OPTION (LOOP JOIN, FORCE ORDER);
            UPDATE s
            SET
                winner = CASE WHEN o.place = 1 AND o.left_out = 0 THEN 1 ELSE 0 END,
                verdict = CASE WHEN o.missing = 1 THEN 'missing' WHEN o.left_out = 1 THEN '' ELSE 'applied' END
            FROM #line AS s
            INNER JOIN (
                SELECT
                    c.detail_id, c.doc, c.missing, c.left_out,
                    ROW_NUMBER() OVER (
                        PARTITION BY c.detail_id, c.left_out
                        ORDER BY c.version_us DESC, c.document_key DESC, c.source_ts DESC, c.doc DESC
                    ) AS place
                FROM (
                    SELECT
                        b.detail_id, b.doc, b.missing, b.version_us, b.document_key, b.source_ts,
                        CASE WHEN b.mark = 1 THEN b.missing ELSE MAX(b.missing) OVER (PARTITION BY b.doc) END AS left_out
                    FROM #line AS b
                ) AS c
            ) AS o ON o.detail_id = s.detail_id AND o.doc = s.doc;
            SELECT @winners = COALESCE(SUM(s.winner), 0)
            FROM #line AS s;
        END;
    -- ledger_update
    -- Guarantees (newest wins): a ledger row is taken over only by a newer document, or by the same document when its
    -- snapshot is not older and says something else than what the ledger holds as written. A rewrite takes the same
    -- content again, never an older one. A failure mark leaves lines alone that hold the very content that failed.
    -- The guard stands in the writing statement and compares only the target's own columns with the staged line: it
    -- needs no lock hint.
    UPDATE l
    SET
        version_us = s.version_us,
        document_key = s.document_key,
        document_id = s.document_id,
        source_ts = s.source_ts,
        content_hash = CASE WHEN s.mark = 1 THEN NULL ELSE s.content_hash END,
        hash_version = CASE WHEN s.mark = 1 THEN NULL ELSE s.hash_version END,
        row_hash = s.row_hash,
        outcome = CASE WHEN s.mark = 1 THEN 'failed' ELSE 'applied' END,
        write_id = @write_id,
        applied_at = SYSUTCDATETIME()
    FROM #line AS s
    INNER JOIN #ledger AS l ON l.detail_id = s.detail_id
    WHERE
        s.winner = 1
        AND (
            l.version_us < s.version_us
            OR (l.version_us = s.version_us AND l.document_key < s.document_key)
            OR (
                l.version_us = s.version_us AND l.document_key = s.document_key AND l.source_ts <= s.source_ts
                AND (
                    l.content_hash IS NULL
                    OR (s.mark = 1 AND (l.content_hash <> s.content_hash OR l.hash_version <> s.hash_version))
                    OR (
                        s.mark = 0
                        AND (
                            @rewrite = 1
                            OR (l.hash_version = s.hash_version AND l.content_hash <> s.content_hash)
                            OR (l.hash_version <> s.hash_version AND l.source_ts < s.source_ts)
                        )
                    )
                )
            )
        )
    OPTION (LOOP JOIN, FORCE ORDER);
    SET @stamped = @@ROWCOUNT;
    -- ledger_insert
    -- Guarantees: a line that the ledger does not know gets its row, stamped with this write; a row that appeared
    -- since ledger_update.sql is left as it is, and the verdict then finds no evidence for this write.
    IF @stamped < @winners OR @expected = 0
        BEGIN
            INSERT INTO #ledger (
                detail_id, version_us, document_key, document_id, source_ts, content_hash, hash_version, row_hash,
                outcome, write_id, applied_at
            )
            SELECT
                s.detail_id, s.version_us, s.document_key, s.document_id, s.source_ts,
                CASE WHEN s.mark = 1 THEN NULL ELSE s.content_hash END,
                CASE WHEN s.mark = 1 THEN NULL ELSE s.hash_version END,
                s.row_hash, CASE WHEN s.mark = 1 THEN 'failed' ELSE 'applied' END, @write_id, SYSUTCDATETIME()
            FROM #line AS s
            WHERE s.winner = 1 AND NOT EXISTS (SELECT 1 FROM #ledger AS l WHERE l.detail_id = s.detail_id)
            ORDER BY s.detail_id
            OPTION (LOOP JOIN, FORCE ORDER);
            SET @stamped = @stamped + @@ROWCOUNT;
        END;
    -- ledger_raise
    -- Guarantees: content that is there already, seen again in a later snapshot, raises source_ts and nothing else,
    -- so that a snapshot between the two can no longer bring older content back. Skipped where this write stamped
    -- every winner.
    IF @stamped < @winners
        BEGIN
            UPDATE l
            SET source_ts = s.source_ts
            FROM #line AS s
            INNER JOIN #ledger AS l ON l.detail_id = s.detail_id
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
    -- Guarantees: every verdict rests on what the ledger holds after the write. A line for which the ledger shows
    -- neither this write, nor this content, nor anything newer is a lost race: the whole request is undone and made
    -- again. Skipped where this write stamped as many ledger rows as the request has lines: a line is stamped at most
    -- once, so each was, and nobody can change a row that we hold. (A pruned line of the same document at the same
    -- source_ts lost to a later item of this very request.) A percent sign is doubled: THROW reads its message as a
    -- form.
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
                        s.mark = 0 AND l.version_us = s.version_us AND l.document_key = s.document_key
                        AND l.hash_version <> s.hash_version AND l.source_ts >= s.source_ts
                        THEN 'unchanged'
                    WHEN
                        l.version_us > s.version_us
                        OR (l.version_us = s.version_us AND l.document_key > s.document_key)
                        OR (
                            l.version_us = s.version_us AND l.document_key = s.document_key
                            AND (l.source_ts > s.source_ts OR (l.source_ts = s.source_ts AND s.winner = 0))
                        )
                        THEN 'superseded'
                    ELSE 'none'
                END,
                holder = l.document_id,
                holder_us = l.version_us,
                holder_key = l.document_key
            FROM #line AS s
            LEFT JOIN #ledger AS l ON l.detail_id = s.detail_id
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
    -- outcomes
    -- Guarantees: first how many lines there are and how many this write stamped; then, unless it stamped all of
    -- them, one row per line, items in their order, the main line first.
    SELECT @rows AS sqlwriter_lines, @stamped AS sqlwriter_stamped;
    IF @stamped < @rows
        SELECT
            s.doc AS sqlwriter_doc, s.position, s.verdict, s.winner,
            CASE WHEN s.verdict = 'superseded' THEN s.holder END AS holder,
            s.holder_us, s.holder_key
        FROM #line AS s
        ORDER BY s.doc, s.position;
    -- preview_before
    -- Guarantees: the present values of every line of the request that has a detail row, in the order of the column
    -- table; tracking values are NULL where the line has no tracking row.
    SELECT
        d.[IVCE_DTL_UID] AS sqlwriter_line,
        d.[CLN_MFR_AI_NM] AS [IVCE_DTL.CLN_MFR_AI_NM],
        d.[CLN_MFR_PRT_NUM] AS [IVCE_DTL.CLN_MFR_PRT_NUM],
        d.[UNSPSC_CD] AS [IVCE_DTL.UNSPSC_CD],
        d.[UPC_CD] AS [IVCE_DTL.UPC_CD],
        d.[AKS_PRT_NUM] AS [IVCE_DTL.AKS_PRT_NUM],
        d.[ITM_AI_LDSC] AS [IVCE_DTL.ITM_AI_LDSC],
        d.[IVCE_LNE_STAT] AS [IVCE_DTL.IVCE_LNE_STAT],
        d.[DATA_VRFN_IND] AS [IVCE_DTL.DATA_VRFN_IND],
        d.[WEB_SRCH_URL] AS [IVCE_DTL.WEB_SRCH_URL],
        d.[MFR_CNFDC_SCR] AS [IVCE_DTL.MFR_CNFDC_SCR],
        d.[PRT_NUM_CNFDC_SCR] AS [IVCE_DTL.PRT_NUM_CNFDC_SCR],
        d.[UNSPSC_CNFDC_SCR] AS [IVCE_DTL.UNSPSC_CNFDC_SCR],
        d.[AI_STG_NM] AS [IVCE_DTL.AI_STG_NM],
        d.[PRNT_IVCE_DTL_ID] AS [IVCE_DTL.PRNT_IVCE_DTL_ID],
        t.[CLN_MFR_AI_NM] AS [IVCE_TRKG_MSTR.CLN_MFR_AI_NM],
        t.[CLN_MFR_PRT_NUM] AS [IVCE_TRKG_MSTR.CLN_MFR_PRT_NUM],
        t.[UNSPSC_CD] AS [IVCE_TRKG_MSTR.UNSPSC_CD],
        t.[UPC_CD] AS [IVCE_TRKG_MSTR.UPC_CD],
        t.[AKS_PRT_NUM] AS [IVCE_TRKG_MSTR.AKS_PRT_NUM],
        t.[ITM_AI_LDSC] AS [IVCE_TRKG_MSTR.ITM_AI_LDSC],
        t.[IVCE_LNE_STAT] AS [IVCE_TRKG_MSTR.IVCE_LNE_STAT],
        t.[MFR_CNFDC_SCR] AS [IVCE_TRKG_MSTR.MFR_CNFDC_SCR],
        t.[PRT_NUM_CNFDC_SCR] AS [IVCE_TRKG_MSTR.PRT_NUM_CNFDC_SCR],
        t.[UNSPSC_CNFDC_SCR] AS [IVCE_TRKG_MSTR.UNSPSC_CNFDC_SCR],
        t.[AI_STG_NM] AS [IVCE_TRKG_MSTR.AI_STG_NM],
        t.[MFR_STG_NM] AS [IVCE_TRKG_MSTR.MFR_STG_NM],
        t.[PRT_NUM_STG_NM] AS [IVCE_TRKG_MSTR.PRT_NUM_STG_NM],
        t.[UNSPSC_STG_NM] AS [IVCE_TRKG_MSTR.UNSPSC_STG_NM],
        t.[RQST_TS] AS [IVCE_TRKG_MSTR.RQST_TS],
        t.[PRCS_STRT_TS] AS [IVCE_TRKG_MSTR.PRCS_STRT_TS],
        t.[PRCS_END_TS] AS [IVCE_TRKG_MSTR.PRCS_END_TS],
        t.[DUP_IND] AS [IVCE_TRKG_MSTR.DUP_IND],
        t.[PRNT_IVCE_DTL_ID] AS [IVCE_TRKG_MSTR.PRNT_IVCE_DTL_ID]
    FROM (SELECT DISTINCT c.detail_id FROM #line AS c) AS s
    INNER JOIN [dbo].[IVCE_DTL] AS d ON d.[IVCE_DTL_UID] = s.detail_id
    LEFT JOIN [dbo].[IVCE_TRKG_MSTR] AS t ON t.[IVCE_DTL_UID] = s.detail_id
    OPTION (LOOP JOIN, FORCE ORDER);
END;
