-- The bare write as a stored procedure: what bare.sql does, installed once and called by name.
-- The condition that is always true tells planners which take no hints that few rows come from the temp table: without
-- it one of them reads the whole of the user's tables.
CREATE PROCEDURE dbo.bench_bare @request nvarchar(max)
AS
BEGIN
    SET NOCOUNT ON;
    SET XACT_ABORT ON;
    SELECT
        r.IVCE_DTL_UID,
        i.CLN_MFR_AI_NM, i.CLN_MFR_PRT_NUM, i.UNSPSC_CD, i.UPC_CD, i.AKS_PRT_NUM, i.ITM_AI_LDSC, i.IVCE_LNE_STAT,
        i.DATA_VRFN_IND, i.WEB_SRCH_URL, i.MFR_CNFDC_SCR, i.PRT_NUM_CNFDC_SCR, i.UNSPSC_CNFDC_SCR, i.AI_STG_NM,
        i.MFR_STG_NM, i.PRT_NUM_STG_NM, i.UNSPSC_STG_NM, i.RQST_TS, i.PRCS_STRT_TS, i.PRCS_END_TS, r.DUP_IND,
        r.PRNT_IVCE_DTL_ID
    INTO #row
    FROM OPENJSON(@request) WITH (
        lines nvarchar(max) '$[0]' AS JSON,
        CLN_MFR_AI_NM nvarchar(255) '$[1]', CLN_MFR_PRT_NUM nvarchar(100) '$[2]', UNSPSC_CD nvarchar(10) '$[3]',
        UPC_CD nvarchar(20) '$[4]', AKS_PRT_NUM nvarchar(50) '$[5]', ITM_AI_LDSC nvarchar(1000) '$[6]',
        IVCE_LNE_STAT nvarchar(20) '$[7]', DATA_VRFN_IND nvarchar(1) '$[8]', WEB_SRCH_URL nvarchar(2000) '$[9]',
        MFR_CNFDC_SCR decimal(5, 4) '$[10]', PRT_NUM_CNFDC_SCR decimal(5, 4) '$[11]',
        UNSPSC_CNFDC_SCR decimal(5, 4) '$[12]', AI_STG_NM nvarchar(50) '$[13]', MFR_STG_NM nvarchar(50) '$[14]',
        PRT_NUM_STG_NM nvarchar(50) '$[15]', UNSPSC_STG_NM nvarchar(50) '$[16]', RQST_TS datetime2(6) '$[17]',
        PRCS_STRT_TS datetime2(6) '$[18]', PRCS_END_TS datetime2(6) '$[19]'
    ) AS i
    CROSS APPLY OPENJSON(i.lines) WITH (
        IVCE_DTL_UID bigint '$[0]', DUP_IND nvarchar(1) '$[1]', PRNT_IVCE_DTL_ID bigint '$[2]'
    ) AS r;
    BEGIN TRANSACTION;
    UPDATE d
    SET
        CLN_MFR_AI_NM = s.CLN_MFR_AI_NM, CLN_MFR_PRT_NUM = s.CLN_MFR_PRT_NUM, UNSPSC_CD = s.UNSPSC_CD, UPC_CD = s.UPC_CD,
        AKS_PRT_NUM = s.AKS_PRT_NUM, ITM_AI_LDSC = s.ITM_AI_LDSC, IVCE_LNE_STAT = s.IVCE_LNE_STAT,
        DATA_VRFN_IND = s.DATA_VRFN_IND, WEB_SRCH_URL = s.WEB_SRCH_URL, MFR_CNFDC_SCR = s.MFR_CNFDC_SCR,
        PRT_NUM_CNFDC_SCR = s.PRT_NUM_CNFDC_SCR, UNSPSC_CNFDC_SCR = s.UNSPSC_CNFDC_SCR, AI_STG_NM = s.AI_STG_NM,
        PRNT_IVCE_DTL_ID = s.PRNT_IVCE_DTL_ID
    FROM #row AS s
    INNER JOIN dbo.IVCE_DTL AS d ON d.IVCE_DTL_UID = s.IVCE_DTL_UID
    WHERE s.IVCE_DTL_UID % 1 = 0
    OPTION (LOOP JOIN, FORCE ORDER);
    UPDATE t
    SET
        CLN_MFR_AI_NM = s.CLN_MFR_AI_NM, CLN_MFR_PRT_NUM = s.CLN_MFR_PRT_NUM, UNSPSC_CD = s.UNSPSC_CD, UPC_CD = s.UPC_CD,
        AKS_PRT_NUM = s.AKS_PRT_NUM, ITM_AI_LDSC = s.ITM_AI_LDSC, IVCE_LNE_STAT = s.IVCE_LNE_STAT,
        MFR_CNFDC_SCR = s.MFR_CNFDC_SCR, PRT_NUM_CNFDC_SCR = s.PRT_NUM_CNFDC_SCR, UNSPSC_CNFDC_SCR = s.UNSPSC_CNFDC_SCR,
        AI_STG_NM = s.AI_STG_NM, MFR_STG_NM = s.MFR_STG_NM, PRT_NUM_STG_NM = s.PRT_NUM_STG_NM,
        UNSPSC_STG_NM = s.UNSPSC_STG_NM, RQST_TS = s.RQST_TS, PRCS_STRT_TS = s.PRCS_STRT_TS, PRCS_END_TS = s.PRCS_END_TS,
        DUP_IND = s.DUP_IND, PRNT_IVCE_DTL_ID = s.PRNT_IVCE_DTL_ID
    FROM #row AS s
    INNER JOIN dbo.IVCE_TRKG_MSTR AS t ON t.IVCE_DTL_UID = s.IVCE_DTL_UID
    WHERE s.IVCE_DTL_UID % 1 = 0
    OPTION (LOOP JOIN, FORCE ORDER);
    INSERT INTO dbo.IVCE_TRKG_MSTR (
        IVCE_DTL_UID,
        CLN_MFR_AI_NM, CLN_MFR_PRT_NUM, UNSPSC_CD, UPC_CD, AKS_PRT_NUM, ITM_AI_LDSC, IVCE_LNE_STAT, MFR_CNFDC_SCR,
        PRT_NUM_CNFDC_SCR, UNSPSC_CNFDC_SCR, AI_STG_NM, MFR_STG_NM, PRT_NUM_STG_NM, UNSPSC_STG_NM, RQST_TS, PRCS_STRT_TS,
        PRCS_END_TS, DUP_IND, PRNT_IVCE_DTL_ID
    )
    SELECT
        s.IVCE_DTL_UID,
        s.CLN_MFR_AI_NM, s.CLN_MFR_PRT_NUM, s.UNSPSC_CD, s.UPC_CD, s.AKS_PRT_NUM, s.ITM_AI_LDSC, s.IVCE_LNE_STAT,
        s.MFR_CNFDC_SCR, s.PRT_NUM_CNFDC_SCR, s.UNSPSC_CNFDC_SCR, s.AI_STG_NM, s.MFR_STG_NM, s.PRT_NUM_STG_NM,
        s.UNSPSC_STG_NM, s.RQST_TS, s.PRCS_STRT_TS, s.PRCS_END_TS, s.DUP_IND, s.PRNT_IVCE_DTL_ID
    FROM #row AS s
    WHERE
        s.IVCE_DTL_UID % 1 = 0
        AND NOT EXISTS (SELECT 1 FROM dbo.IVCE_TRKG_MSTR AS t WHERE t.IVCE_DTL_UID = s.IVCE_DTL_UID);
    COMMIT TRANSACTION;
END;
