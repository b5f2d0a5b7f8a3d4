-- Made by sqlwriterctl migrate up, one set for each build and settings file (sqlwriter.procedure_set).
CREATE PROCEDURE sqlwriter.reconcile_scan_hash
    @after bigint,
    @limit int,
    @sys_name nvarchar(256),
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
    -- reconcile_scan
    -- Guarantees: the next ledger rows by the key, at most @limit of them whatever their environment, each with the present
    -- rows of its line. Lines of other environments come without their rows, which are not read. The read takes no lasting
    -- lock, so a write may come between a ledger row and its line.
    SELECT
        l.detail_id, l.version_us, l.document_key, l.document_id, l.source_ts, l.content_hash, l.hash_version,
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
    FROM (
        SELECT TOP (@limit) o.*
        FROM [sqlwriter].[ledger] AS o
        WHERE o.detail_id > @after
        ORDER BY o.detail_id
    ) AS l
    LEFT JOIN [dbo].[IVCE_DTL] AS d ON d.[IVCE_DTL_UID] = l.detail_id AND l.sys_name = @sys_name
    LEFT JOIN [dbo].[IVCE_TRKG_MSTR] AS t ON t.[IVCE_DTL_UID] = l.detail_id AND l.sys_name = @sys_name
    ORDER BY l.detail_id
    OPTION (LOOP JOIN, FORCE ORDER);
END;
