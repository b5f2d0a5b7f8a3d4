-- IVCE_DTL's upsert as the Azure SQL output binding sends it (SqlAsyncCollector.cs of azure-functions-sql-extension): an object
-- per row, its members named as the columns.
WITH cte AS (
    SELECT *
    FROM OPENJSON(@rowData) WITH (
        IVCE_DTL_UID bigint, CLN_MFR_AI_NM nvarchar(255), CLN_MFR_PRT_NUM nvarchar(100), UNSPSC_CD nvarchar(10),
        UPC_CD nvarchar(20), AKS_PRT_NUM nvarchar(50), ITM_AI_LDSC nvarchar(1000), IVCE_LNE_STAT nvarchar(20),
        DATA_VRFN_IND nvarchar(1), WEB_SRCH_URL nvarchar(2000), MFR_CNFDC_SCR decimal(5, 4),
        PRT_NUM_CNFDC_SCR decimal(5, 4), UNSPSC_CNFDC_SCR decimal(5, 4), AI_STG_NM nvarchar(50),
        PRNT_IVCE_DTL_ID bigint
    )
)
MERGE INTO dbo.IVCE_DTL WITH (HOLDLOCK) AS ExistingData
USING cte AS NewData
ON ExistingData.IVCE_DTL_UID = NewData.IVCE_DTL_UID
WHEN MATCHED THEN
    UPDATE SET
        IVCE_DTL_UID = NewData.IVCE_DTL_UID, CLN_MFR_AI_NM = NewData.CLN_MFR_AI_NM,
        CLN_MFR_PRT_NUM = NewData.CLN_MFR_PRT_NUM, UNSPSC_CD = NewData.UNSPSC_CD, UPC_CD = NewData.UPC_CD,
        AKS_PRT_NUM = NewData.AKS_PRT_NUM, ITM_AI_LDSC = NewData.ITM_AI_LDSC, IVCE_LNE_STAT = NewData.IVCE_LNE_STAT,
        DATA_VRFN_IND = NewData.DATA_VRFN_IND, WEB_SRCH_URL = NewData.WEB_SRCH_URL,
        MFR_CNFDC_SCR = NewData.MFR_CNFDC_SCR, PRT_NUM_CNFDC_SCR = NewData.PRT_NUM_CNFDC_SCR,
        UNSPSC_CNFDC_SCR = NewData.UNSPSC_CNFDC_SCR, AI_STG_NM = NewData.AI_STG_NM,
        PRNT_IVCE_DTL_ID = NewData.PRNT_IVCE_DTL_ID
WHEN NOT MATCHED THEN
    INSERT (
        IVCE_DTL_UID, CLN_MFR_AI_NM, CLN_MFR_PRT_NUM, UNSPSC_CD, UPC_CD, AKS_PRT_NUM, ITM_AI_LDSC, IVCE_LNE_STAT,
        DATA_VRFN_IND, WEB_SRCH_URL, MFR_CNFDC_SCR, PRT_NUM_CNFDC_SCR, UNSPSC_CNFDC_SCR, AI_STG_NM, PRNT_IVCE_DTL_ID
    ) VALUES (
        NewData.IVCE_DTL_UID, NewData.CLN_MFR_AI_NM, NewData.CLN_MFR_PRT_NUM, NewData.UNSPSC_CD, NewData.UPC_CD,
        NewData.AKS_PRT_NUM, NewData.ITM_AI_LDSC, NewData.IVCE_LNE_STAT, NewData.DATA_VRFN_IND, NewData.WEB_SRCH_URL,
        NewData.MFR_CNFDC_SCR, NewData.PRT_NUM_CNFDC_SCR, NewData.UNSPSC_CNFDC_SCR, NewData.AI_STG_NM,
        NewData.PRNT_IVCE_DTL_ID
    );
