DECLARE @request nvarchar(max), @rewrite bigint, @expected bigint;
-- begin
-- Guarantees: one bad statement ends the whole request and undoes it; a lock that somebody holds costs a few seconds
-- and not for ever; where two block each other the user's own programs win.
SET NOCOUNT ON;
SET XACT_ABORT ON;
SET LOCK_TIMEOUT 5000;
SET DEADLOCK_PRIORITY LOW;
DECLARE @write_id uniqueidentifier = NEWID();
DECLARE @rows int, @lines int, @missing int, @known int, @tracked int, @winners int;
DECLARE @stamped int = 0, @changed int = 0, @content int, @marks int, @written int;
DECLARE @note nvarchar(400);
-- stage
-- Guarantees: the request has a table of its own, one row per line of each document, keyed (detail_id, doc). Texts and
-- numbers are wider here than in the user's columns: what is too wide is refused there instead of being cut here.
CREATE TABLE #line (
    detail_id bigint NOT NULL,
    doc int NOT NULL,
    position int NOT NULL,
    document_id nvarchar(max) NOT NULL,
    document_key char(64) COLLATE Latin1_General_BIN2 NOT NULL,
    version_us bigint NOT NULL,
    source_ts bigint NOT NULL,
    content_hash char(64) COLLATE Latin1_General_BIN2 NOT NULL,
    hash_version int NOT NULL,
    row_hash char(64) COLLATE Latin1_General_BIN2 NULL,
    mark int NOT NULL,
    missing int NOT NULL DEFAULT 0,
    winner int NOT NULL DEFAULT 1,
    verdict varchar(10) NOT NULL DEFAULT 'applied',
    holder nvarchar(1023) NULL,
    holder_us bigint NULL,
    holder_key char(64) NULL,
    [d.CLN_MFR_AI_NM] nvarchar(max) NULL,
    [d.CLN_MFR_PRT_NUM] nvarchar(max) NULL,
    [d.UNSPSC_CD] nvarchar(max) NULL,
    [d.UPC_CD] nvarchar(max) NULL,
    [d.AKS_PRT_NUM] nvarchar(max) NULL,
    [d.ITM_AI_LDSC] nvarchar(max) NULL,
    [d.IVCE_LNE_STAT] nvarchar(max) NULL,
    [d.DATA_VRFN_IND] nvarchar(max) NULL,
    [d.WEB_SRCH_URL] nvarchar(max) NULL,
    [d.MFR_CNFDC_SCR] decimal(38, 12) NULL,
    [d.PRT_NUM_CNFDC_SCR] decimal(38, 12) NULL,
    [d.UNSPSC_CNFDC_SCR] decimal(38, 12) NULL,
    [d.AI_STG_NM] nvarchar(max) NULL,
    [d.PRNT_IVCE_DTL_ID] bigint NULL,
    [t.CLN_MFR_AI_NM] nvarchar(max) NULL,
    [t.CLN_MFR_PRT_NUM] nvarchar(max) NULL,
    [t.UNSPSC_CD] nvarchar(max) NULL,
    [t.UPC_CD] nvarchar(max) NULL,
    [t.AKS_PRT_NUM] nvarchar(max) NULL,
    [t.ITM_AI_LDSC] nvarchar(max) NULL,
    [t.IVCE_LNE_STAT] nvarchar(max) NULL,
    [t.MFR_CNFDC_SCR] decimal(38, 12) NULL,
    [t.PRT_NUM_CNFDC_SCR] decimal(38, 12) NULL,
    [t.UNSPSC_CNFDC_SCR] decimal(38, 12) NULL,
    [t.AI_STG_NM] nvarchar(max) NULL,
    [t.MFR_STG_NM] nvarchar(max) NULL,
    [t.PRT_NUM_STG_NM] nvarchar(max) NULL,
    [t.UNSPSC_STG_NM] nvarchar(max) NULL,
    [t.RQST_TS] datetime2(7) NULL,
    [t.PRCS_STRT_TS] datetime2(7) NULL,
    [t.PRCS_END_TS] datetime2(7) NULL,
    [t.DUP_IND] nvarchar(max) NULL,
    [t.PRNT_IVCE_DTL_ID] bigint NULL,
    PRIMARY KEY (detail_id, doc)
);
-- load
-- Guarantees: every line of the request is staged once, in the order of the lines (locks are then usually
-- taken in it).
-- @request is {"items": [[number, id, key, version, source_ts, hash, hash version, mark, its values] ...],
-- "lines": [[detail id, item's number, position, row hash, the values that differ from line to line] ...]}.
INSERT INTO #line (
    detail_id, doc, position, document_id, document_key, version_us, source_ts, content_hash, hash_version, row_hash,
    mark,
    [d.CLN_MFR_AI_NM],
    [d.CLN_MFR_PRT_NUM],
    [d.UNSPSC_CD],
    [d.UPC_CD],
    [d.AKS_PRT_NUM],
    [d.ITM_AI_LDSC],
    [d.IVCE_LNE_STAT],
    [d.DATA_VRFN_IND],
    [d.WEB_SRCH_URL],
    [d.MFR_CNFDC_SCR],
    [d.PRT_NUM_CNFDC_SCR],
    [d.UNSPSC_CNFDC_SCR],
    [d.AI_STG_NM],
    [t.CLN_MFR_AI_NM],
    [t.CLN_MFR_PRT_NUM],
    [t.UNSPSC_CD],
    [t.UPC_CD],
    [t.AKS_PRT_NUM],
    [t.ITM_AI_LDSC],
    [t.IVCE_LNE_STAT],
    [t.MFR_CNFDC_SCR],
    [t.PRT_NUM_CNFDC_SCR],
    [t.UNSPSC_CNFDC_SCR],
    [t.AI_STG_NM],
    [t.MFR_STG_NM],
    [t.PRT_NUM_STG_NM],
    [t.UNSPSC_STG_NM],
    [t.RQST_TS],
    [t.PRCS_STRT_TS],
    [t.PRCS_END_TS],
    [d.PRNT_IVCE_DTL_ID],
    [t.DUP_IND],
    [t.PRNT_IVCE_DTL_ID]
)
SELECT
    r.detail_id, i.doc, r.position, i.document_id, i.document_key, i.version_us, i.source_ts, i.content_hash,
    i.hash_version, r.row_hash, i.mark,
    i.[d.CLN_MFR_AI_NM],
    i.[d.CLN_MFR_PRT_NUM],
    i.[d.UNSPSC_CD],
    i.[d.UPC_CD],
    i.[d.AKS_PRT_NUM],
    i.[d.ITM_AI_LDSC],
    i.[d.IVCE_LNE_STAT],
    i.[d.DATA_VRFN_IND],
    i.[d.WEB_SRCH_URL],
    i.[d.MFR_CNFDC_SCR],
    i.[d.PRT_NUM_CNFDC_SCR],
    i.[d.UNSPSC_CNFDC_SCR],
    i.[d.AI_STG_NM],
    i.[t.CLN_MFR_AI_NM],
    i.[t.CLN_MFR_PRT_NUM],
    i.[t.UNSPSC_CD],
    i.[t.UPC_CD],
    i.[t.AKS_PRT_NUM],
    i.[t.ITM_AI_LDSC],
    i.[t.IVCE_LNE_STAT],
    i.[t.MFR_CNFDC_SCR],
    i.[t.PRT_NUM_CNFDC_SCR],
    i.[t.UNSPSC_CNFDC_SCR],
    i.[t.AI_STG_NM],
    i.[t.MFR_STG_NM],
    i.[t.PRT_NUM_STG_NM],
    i.[t.UNSPSC_STG_NM],
    i.[t.RQST_TS],
    i.[t.PRCS_STRT_TS],
    i.[t.PRCS_END_TS],
    r.[d.PRNT_IVCE_DTL_ID],
    r.[t.DUP_IND],
    r.[t.PRNT_IVCE_DTL_ID]
FROM
    OPENJSON (@request, '$.lines') WITH (
        detail_id bigint '$[0]',
        doc int '$[1]',
        position int '$[2]',
        row_hash char(64) '$[3]',
        [d.PRNT_IVCE_DTL_ID] bigint '$[4]',
        [t.DUP_IND] nvarchar(max) '$[5]',
        [t.PRNT_IVCE_DTL_ID] bigint '$[6]'
    ) AS r
INNER HASH JOIN
    OPENJSON (@request, '$.items') WITH (
        doc int '$[0]',
        document_id nvarchar(max) '$[1]',
        document_key char(64) '$[2]',
        version_us bigint '$[3]',
        source_ts bigint '$[4]',
        content_hash char(64) '$[5]',
        hash_version int '$[6]',
        mark int '$[7]',
        [d.CLN_MFR_AI_NM] nvarchar(max) '$[8]',
        [d.CLN_MFR_PRT_NUM] nvarchar(max) '$[9]',
        [d.UNSPSC_CD] nvarchar(max) '$[10]',
        [d.UPC_CD] nvarchar(max) '$[11]',
        [d.AKS_PRT_NUM] nvarchar(max) '$[12]',
        [d.ITM_AI_LDSC] nvarchar(max) '$[13]',
        [d.IVCE_LNE_STAT] nvarchar(max) '$[14]',
        [d.DATA_VRFN_IND] nvarchar(max) '$[15]',
        [d.WEB_SRCH_URL] nvarchar(max) '$[16]',
        [d.MFR_CNFDC_SCR] decimal(38, 12) '$[17]',
        [d.PRT_NUM_CNFDC_SCR] decimal(38, 12) '$[18]',
        [d.UNSPSC_CNFDC_SCR] decimal(38, 12) '$[19]',
        [d.AI_STG_NM] nvarchar(max) '$[20]',
        [t.CLN_MFR_AI_NM] nvarchar(max) '$[21]',
        [t.CLN_MFR_PRT_NUM] nvarchar(max) '$[22]',
        [t.UNSPSC_CD] nvarchar(max) '$[23]',
        [t.UPC_CD] nvarchar(max) '$[24]',
        [t.AKS_PRT_NUM] nvarchar(max) '$[25]',
        [t.ITM_AI_LDSC] nvarchar(max) '$[26]',
        [t.IVCE_LNE_STAT] nvarchar(max) '$[27]',
        [t.MFR_CNFDC_SCR] decimal(38, 12) '$[28]',
        [t.PRT_NUM_CNFDC_SCR] decimal(38, 12) '$[29]',
        [t.UNSPSC_CNFDC_SCR] decimal(38, 12) '$[30]',
        [t.AI_STG_NM] nvarchar(max) '$[31]',
        [t.MFR_STG_NM] nvarchar(max) '$[32]',
        [t.PRT_NUM_STG_NM] nvarchar(max) '$[33]',
        [t.UNSPSC_STG_NM] nvarchar(max) '$[34]',
        [t.RQST_TS] datetime2(7) '$[35]',
        [t.PRCS_STRT_TS] datetime2(7) '$[36]',
        [t.PRCS_END_TS] datetime2(7) '$[37]'
    ) AS i
    ON i.doc = r.doc
ORDER BY r.detail_id, r.doc;
-- look
-- Guarantees: it is known what is there for the lines already: detail rows (we never make one), ledger rows, tracking rows.
-- This is read before anything is locked and only chooses statements; what changed since is found by the guards and counts.
-- (Every line is a winner yet; saying so tells optimizers that ignore the hint how few there are.)
SELECT
    @rows = COUNT(*),
    @lines = COUNT(DISTINCT s.detail_id),
    @marks = SUM(s.mark),
    @missing = SUM(CASE WHEN d.[IVCE_DTL_UID] IS NULL THEN 1 ELSE 0 END),
    @known = SUM(CASE WHEN l.detail_id IS NULL THEN 0 ELSE 1 END),
    @tracked = SUM(CASE WHEN s.mark = 1 OR t.[IVCE_DTL_UID] IS NULL THEN 0 ELSE 1 END)
FROM #line AS s
LEFT JOIN [dbo].[IVCE_DTL] AS d ON d.[IVCE_DTL_UID] = s.detail_id
LEFT JOIN [sqlwriter].[ledger] AS l ON l.detail_id = s.detail_id
LEFT JOIN [dbo].[IVCE_TRKG_MSTR] AS t ON t.[IVCE_DTL_UID] = s.detail_id
WHERE s.winner = 1
OPTION (LOOP JOIN, FORCE ORDER);
SET @winners = @rows;
IF @rows <> @expected
    BEGIN
        SET @note = CONCAT(N'sqlwriter: expected ', @expected, N' lines, found ', @rows, N': a key stands twice');
        THROW 52741, @note, 1;
    END;
-- prune
-- Guarantees: a document with a missing line is out as a whole (a failure mark loses that line alone), and each line has
-- one winner among the documents that are left: the newest by (version, document key, source_ts), the later item where
-- those are equal. Skipped where every line exists and is named once: then each is its own winner.
IF @missing > 0 OR @lines < @rows
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
        SELECT
            @winners = SUM(s.winner),
            @known = SUM(CASE WHEN l.detail_id IS NULL THEN 0 ELSE s.winner END)
        FROM #line AS s
        LEFT JOIN [sqlwriter].[ledger] AS l ON l.detail_id = s.detail_id
        OPTION (LOOP JOIN, FORCE ORDER);
    END;
-- transaction
-- Guarantees: all or nothing, whoever raises the error. XACT_ABORT alone would let a RAISERROR of a user's trigger pass
-- and commit what came before it.
BEGIN TRY
    BEGIN TRANSACTION;
    -- ledger_update
    -- Guarantees (newest wins): a ledger row is taken over only by a newer document, or by the same document when its
    -- snapshot is not older and says something else than what the ledger holds as written. A rewrite takes the same content
    -- again, never an older one. A failure mark leaves lines alone that hold the very content that failed. The guard stands
    -- in the writing statement and compares only the target's own columns with the staged line: it needs no lock hint.
    IF @known > 0
        BEGIN
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
            INNER JOIN [sqlwriter].[ledger] AS l ON l.detail_id = s.detail_id
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
        END;
    -- ledger_insert
    -- Guarantees: a line that the ledger does not know gets its row, stamped with this write; a row that appeared since it
    -- was looked for is left as it is, and the verdict then finds no evidence for this write.
    IF @known < @winners
        BEGIN
            INSERT INTO [sqlwriter].[ledger] (
                detail_id, version_us, document_key, document_id, source_ts, content_hash, hash_version, row_hash, outcome,
                write_id, applied_at
            )
            SELECT
                s.detail_id, s.version_us, s.document_key, s.document_id, s.source_ts,
                CASE WHEN s.mark = 1 THEN NULL ELSE s.content_hash END,
                CASE WHEN s.mark = 1 THEN NULL ELSE s.hash_version END,
                s.row_hash, CASE WHEN s.mark = 1 THEN 'failed' ELSE 'applied' END, @write_id, SYSUTCDATETIME()
            FROM #line AS s
            WHERE s.winner = 1 AND NOT EXISTS (SELECT 1 FROM [sqlwriter].[ledger] AS l WHERE l.detail_id = s.detail_id)
            ORDER BY s.detail_id
            OPTION (LOOP JOIN, FORCE ORDER);
            SET @stamped = @stamped + @@ROWCOUNT;
        END;
    -- ledger_raise
    -- Guarantees: content that is there already, seen again in a later snapshot, raises source_ts and nothing else, so that
    -- a snapshot between the two can no longer bring older content back. Skipped where this write stamped every winner.
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
    -- Guarantees: every verdict rests on what the ledger holds after the write. A line for which the ledger shows neither
    -- this write, nor this content, nor anything newer is a lost race: the whole request is undone and made again.
    -- Skipped where this write stamped as many ledger rows as the request has lines: a line is stamped at most once, so
    -- each was, and nobody can change a row that we hold. (A pruned line of the same document at the same source_ts lost to
    -- a later item of this very request.)
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
            LEFT JOIN [sqlwriter].[ledger] AS l ON l.detail_id = s.detail_id
            WHERE s.verdict = 'applied'
            OPTION (LOOP JOIN, FORCE ORDER);
            SELECT @note = MIN(CONCAT(N'document ', s.document_id, N', line ', s.detail_id))
            FROM #line AS s
            WHERE s.verdict = 'none';
            IF @note IS NOT NULL
                BEGIN
                    SET @note = CONCAT(N'sqlwriter: no evidence in the ledger: ', @note);
                    THROW 52740, @note, 1;
                END;
            SELECT
                @changed = COUNT(*), @marks = COALESCE(SUM(s.mark), 0),
                @tracked = COALESCE(SUM(CASE WHEN s.mark = 1 OR t.[IVCE_DTL_UID] IS NULL THEN 0 ELSE 1 END), 0)
            FROM #line AS s
            LEFT JOIN [dbo].[IVCE_TRKG_MSTR] AS t ON t.[IVCE_DTL_UID] = s.detail_id
            WHERE s.winner = 1 AND s.verdict = 'applied'
            OPTION (LOOP JOIN, FORCE ORDER);
        END
    ELSE
        SET @changed = @rows;
    SET @content = @changed - @marks;
    -- detail_update
    -- Guarantees: the detail rows of applied lines get every column of the table, all of them or the request is undone.
    IF @content > 0
        BEGIN
            UPDATE d
            SET
                [CLN_MFR_AI_NM] = s.[d.CLN_MFR_AI_NM],
                [CLN_MFR_PRT_NUM] = s.[d.CLN_MFR_PRT_NUM],
                [UNSPSC_CD] = s.[d.UNSPSC_CD],
                [UPC_CD] = s.[d.UPC_CD],
                [AKS_PRT_NUM] = s.[d.AKS_PRT_NUM],
                [ITM_AI_LDSC] = s.[d.ITM_AI_LDSC],
                [IVCE_LNE_STAT] = s.[d.IVCE_LNE_STAT],
                [DATA_VRFN_IND] = s.[d.DATA_VRFN_IND],
                [WEB_SRCH_URL] = s.[d.WEB_SRCH_URL],
                [MFR_CNFDC_SCR] = s.[d.MFR_CNFDC_SCR],
                [PRT_NUM_CNFDC_SCR] = s.[d.PRT_NUM_CNFDC_SCR],
                [UNSPSC_CNFDC_SCR] = s.[d.UNSPSC_CNFDC_SCR],
                [AI_STG_NM] = s.[d.AI_STG_NM],
                [PRNT_IVCE_DTL_ID] = s.[d.PRNT_IVCE_DTL_ID]
            FROM #line AS s
            INNER JOIN [dbo].[IVCE_DTL] AS d ON d.[IVCE_DTL_UID] = s.detail_id
            WHERE s.winner = 1 AND s.verdict = 'applied' AND s.mark = 0
            OPTION (LOOP JOIN, FORCE ORDER);
            SET @written = @@ROWCOUNT;
            IF @written <> @content
                BEGIN
                    SET @note = CONCAT(N'sqlwriter: IVCE_DTL: expected ', @content, N' rows written, found ', @written);
                    THROW 52741, @note, 1;
                END;
        END;
    -- detail_mark
    -- Guarantees: a failure mark writes the line status of its applied lines and nothing else.
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
    -- Guarantees: tracking rows that exist get every column of the table. Failure marks do not reach this table.
    SET @written = 0;
    IF @tracked > 0
        BEGIN
            UPDATE t
            SET
                [CLN_MFR_AI_NM] = s.[t.CLN_MFR_AI_NM],
                [CLN_MFR_PRT_NUM] = s.[t.CLN_MFR_PRT_NUM],
                [UNSPSC_CD] = s.[t.UNSPSC_CD],
                [UPC_CD] = s.[t.UPC_CD],
                [AKS_PRT_NUM] = s.[t.AKS_PRT_NUM],
                [ITM_AI_LDSC] = s.[t.ITM_AI_LDSC],
                [IVCE_LNE_STAT] = s.[t.IVCE_LNE_STAT],
                [MFR_CNFDC_SCR] = s.[t.MFR_CNFDC_SCR],
                [PRT_NUM_CNFDC_SCR] = s.[t.PRT_NUM_CNFDC_SCR],
                [UNSPSC_CNFDC_SCR] = s.[t.UNSPSC_CNFDC_SCR],
                [AI_STG_NM] = s.[t.AI_STG_NM],
                [MFR_STG_NM] = s.[t.MFR_STG_NM],
                [PRT_NUM_STG_NM] = s.[t.PRT_NUM_STG_NM],
                [UNSPSC_STG_NM] = s.[t.UNSPSC_STG_NM],
                [RQST_TS] = s.[t.RQST_TS],
                [PRCS_STRT_TS] = s.[t.PRCS_STRT_TS],
                [PRCS_END_TS] = s.[t.PRCS_END_TS],
                [DUP_IND] = s.[t.DUP_IND],
                [PRNT_IVCE_DTL_ID] = s.[t.PRNT_IVCE_DTL_ID]
            FROM #line AS s
            INNER JOIN [dbo].[IVCE_TRKG_MSTR] AS t ON t.[IVCE_DTL_UID] = s.detail_id
            WHERE s.winner = 1 AND s.verdict = 'applied' AND s.mark = 0
            OPTION (LOOP JOIN, FORCE ORDER);
            SET @written = @@ROWCOUNT;
        END;
    -- tracking_insert
    -- Guarantees: an applied line without a tracking row gets one. Updated and inserted rows together are as many as the
    -- applied lines: a row that somebody else made in between has our values in neither count, and the request is undone.
    IF @written < @content
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
                [PRNT_IVCE_DTL_ID]
            )
            SELECT
                s.detail_id,
                s.[t.CLN_MFR_AI_NM],
                s.[t.CLN_MFR_PRT_NUM],
                s.[t.UNSPSC_CD],
                s.[t.UPC_CD],
                s.[t.AKS_PRT_NUM],
                s.[t.ITM_AI_LDSC],
                s.[t.IVCE_LNE_STAT],
                s.[t.MFR_CNFDC_SCR],
                s.[t.PRT_NUM_CNFDC_SCR],
                s.[t.UNSPSC_CNFDC_SCR],
                s.[t.AI_STG_NM],
                s.[t.MFR_STG_NM],
                s.[t.PRT_NUM_STG_NM],
                s.[t.UNSPSC_STG_NM],
                s.[t.RQST_TS],
                s.[t.PRCS_STRT_TS],
                s.[t.PRCS_END_TS],
                s.[t.DUP_IND],
                s.[t.PRNT_IVCE_DTL_ID]
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
            THROW 52741, @note, 1;
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
-- Guarantees: first how many lines there are and how many this write stamped; then, unless it stamped all of them, one
-- row per line, items in their order, the main line first.
SELECT @rows AS sqlwriter_lines, @stamped AS sqlwriter_stamped;
IF @stamped < @rows
    SELECT
        s.doc AS sqlwriter_doc, s.position, s.verdict, s.winner,
        CASE WHEN s.verdict = 'superseded' THEN s.holder END AS holder,
        s.holder_us, s.holder_key
    FROM #line AS s
    ORDER BY s.doc, s.position;
