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
    FROM OPENJSON (@lines) WITH (detail_id bigint '$[0]') AS s
    LEFT JOIN [sqlwriter].[ledger] AS l WITH (REPEATABLEREAD) ON l.detail_id = s.detail_id
    LEFT JOIN [dbo].[IVCE_DTL] AS d WITH (READCOMMITTEDLOCK) ON d.[IVCE_DTL_UID] = s.detail_id
    LEFT JOIN [dbo].[IVCE_TRKG_MSTR] AS t WITH (READCOMMITTEDLOCK) ON t.[IVCE_DTL_UID] = s.detail_id
    OPTION (LOOP JOIN, FORCE ORDER);
END;
