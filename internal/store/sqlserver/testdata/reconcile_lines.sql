-- Made by sqlwriterctl migrate up, one set for each build and settings file (sqlwriter.procedure_set).
CREATE PROCEDURE sqlwriter.reconcile_lines_hash
    @lines nvarchar(max),
    @days int
AS
BEGIN
    -- begin_lowest
    -- Guarantees: an error ends the whole request. A wait for a lock is bounded. In a deadlock a comparison or a purge
    -- loses to every write, whose priority is LOW (-5) or higher.
    SET NOCOUNT ON;
    SET XACT_ABORT ON;
    SET LOCK_TIMEOUT 5000;
    SET DEADLOCK_PRIORITY -10;
    -- reconcile_lines
    -- Guarantees: a row for each line of @lines, [[id] ...], with its ledger row and its present rows, as far as they
    -- exist. The ledger's rows stay locked until the statement ends, so that no write comes between a ledger row and its
    -- line. The user's rows are the present ones, also in a database with READ_COMMITTED_SNAPSHOT.
    SELECT
        s.detail_id, l.version_us, l.document_key, l.document_id, l.source_ts, l.content_hash, l.hash_version,
        l.sys_name, l.outcome, LOWER(CAST(l.write_id AS varchar(36))) AS write_id, l.detail_row_hash, l.tracking_row_hash,
        CASE WHEN @days > 0 AND l.applied_at < DATEADD(DAY, -@days, SYSUTCDATETIME()) THEN 1 ELSE 0 END AS is_old,
        CASE WHEN d.[IVCE_DTL_UID] IS NULL THEN 0 ELSE 1 END AS in_detail,
        CASE WHEN t.[IVCE_DTL_UID] IS NULL THEN 0 ELSE 1 END AS in_tracking,
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
    FROM OPENJSON (@lines) WITH (detail_id bigint '$[0]') AS s
    LEFT JOIN [sqlwriter].[ledger] AS l WITH (REPEATABLEREAD) ON l.detail_id = s.detail_id
    LEFT JOIN [dbo].[IVCE_DTL] AS d WITH (READCOMMITTEDLOCK) ON d.[IVCE_DTL_UID] = s.detail_id
    LEFT JOIN [dbo].[IVCE_TRKG_MSTR] AS t WITH (READCOMMITTEDLOCK) ON t.[IVCE_DTL_UID] = s.detail_id
    OPTION (LOOP JOIN, FORCE ORDER);
END;
