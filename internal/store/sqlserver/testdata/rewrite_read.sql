-- Made by sqlwriterctl migrate up, one set for each build and settings file (sqlwriter.procedure_set).
CREATE PROCEDURE sqlwriter.rewrite_read_hash
    @request nvarchar(max),
    @hashes varbinary(max),
    @expected int,
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
        1 AS winner, CAST('applied' AS varchar(14)) AS verdict,
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
            l1 nvarchar(2) '$[6]'
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
    -- rewrite_read
    -- Guarantees: a row for each line that a rewrite would write, with the ledger's hashes, the fingerprints of its two
    -- rows and their values, in the order of the column table. The fingerprint of an absent tracking row is NULL.
    -- keep_status is 1 where a write would say unchanged. The content's hash is NULL of an older document.
    -- The ledger's rows stay locked until the statement ends, so that no write comes between a ledger row and its line. The
    -- user's rows are the present ones, also in a database with READ_COMMITTED_SNAPSHOT.
    SELECT
        s.doc AS sqlwriter_present, s.position,
        CASE
            WHEN
                l.detail_id IS NULL
                OR (l.version_us < s.version_us OR (l.version_us = s.version_us AND l.document_key < s.document_key))
                OR (
                    l.content_hash IS NULL
                    OR (l.hash_version = s.hash_version AND l.content_hash <> s.content_hash)
                    OR (
                        s.mark = 0 AND l.hash_version <> s.hash_version AND l.source_ts < s.source_ts
                        AND l.source_ts < s.leave_since
                        AND DATEDIFF_BIG(SECOND, '1970-01-01', l.applied_at) < s.leave_since
                    )
                )
                THEN 0
            ELSE 1
        END AS keep_status,
        CASE
            WHEN
                (l.version_us < s.version_us OR (l.version_us = s.version_us AND l.document_key < s.document_key))
                THEN CAST(NULL AS binary(32))
            ELSE l.content_hash
        END AS content_hash,
        CASE WHEN l.detail_id IS NULL THEN 0 ELSE 1 END AS known, l.hash_version, l.detail_row_hash, l.tracking_row_hash,
        CAST(SUBSTRING(HASHBYTES('SHA2_256', (
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
        )), 1, 8) AS bigint) AS detail_seen,
        CASE
            WHEN t.[IVCE_DTL_UID] IS NOT NULL
                THEN CAST(SUBSTRING(HASHBYTES('SHA2_256', (
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
                )), 1, 8) AS bigint)
        END AS tracking_seen,
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
        d.[PRNT_IVCE_DTL_ID] AS c13,
        t.[CLN_MFR_AI_NM] AS c14,
        t.[CLN_MFR_PRT_NUM] AS c15,
        t.[UNSPSC_CD] AS c16,
        t.[UPC_CD] AS c17,
        t.[AKS_PRT_NUM] AS c18,
        t.[ITM_AI_LDSC] AS c19,
        t.[IVCE_LNE_STAT] AS c20,
        t.[MFR_CNFDC_SCR] AS c21,
        t.[PRT_NUM_CNFDC_SCR] AS c22,
        t.[UNSPSC_CNFDC_SCR] AS c23,
        t.[AI_STG_NM] AS c24,
        t.[MFR_STG_NM] AS c25,
        t.[PRT_NUM_STG_NM] AS c26,
        t.[UNSPSC_STG_NM] AS c27,
        t.[RQST_TS] AS c28,
        t.[PRCS_STRT_TS] AS c29,
        t.[PRCS_END_TS] AS c30,
        t.[DUP_IND] AS c31,
        t.[PRNT_IVCE_DTL_ID] AS c32,
        t.[DATA_VRFN_IND] AS c33,
        t.[WEB_SRCH_URL] AS c34
    FROM #line AS s
    LEFT JOIN [sqlwriter].[ledger] AS l WITH (REPEATABLEREAD) ON l.detail_id = s.detail_id
    INNER JOIN [dbo].[IVCE_DTL] AS d WITH (READCOMMITTEDLOCK) ON d.[IVCE_DTL_UID] = s.detail_id
    LEFT JOIN [dbo].[IVCE_TRKG_MSTR] AS t WITH (READCOMMITTEDLOCK) ON t.[IVCE_DTL_UID] = s.detail_id
    WHERE
        s.mark = 0
        AND (
            l.detail_id IS NULL
            OR (l.version_us < s.version_us OR (l.version_us = s.version_us AND l.document_key < s.document_key))
            OR (l.version_us = s.version_us AND l.document_key = s.document_key AND l.source_ts <= s.source_ts)
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
END;
