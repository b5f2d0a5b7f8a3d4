-- Samples of the user's two tables: the columns that we write, from the column table, and two that we do not
-- use (IVCE_NUM, ITM_LDSC).
IF OBJECT_ID(N'[dbo].[IVCE_DTL]', N'U') IS NULL
    CREATE TABLE [dbo].[IVCE_DTL] (
        [IVCE_DTL_UID] bigint NOT NULL,
        [IVCE_NUM] nvarchar(50) NULL,
        [ITM_LDSC] nvarchar(200) NULL,
        [CLN_MFR_AI_NM] nvarchar(255) NULL,
        [CLN_MFR_PRT_NUM] nvarchar(100) NULL,
        [UNSPSC_CD] nvarchar(10) NULL,
        [UPC_CD] nvarchar(20) NULL,
        [AKS_PRT_NUM] nvarchar(50) NULL,
        [ITM_AI_LDSC] nvarchar(1000) NULL,
        [IVCE_LNE_STAT] nvarchar(20) NULL,
        [DATA_VRFN_IND] nvarchar(1) NULL,
        [WEB_SRCH_URL] nvarchar(2000) NULL,
        [MFR_CNFDC_SCR] decimal(5, 4) NULL,
        [PRT_NUM_CNFDC_SCR] decimal(5, 4) NULL,
        [UNSPSC_CNFDC_SCR] decimal(5, 4) NULL,
        [AI_STG_NM] nvarchar(50) NULL,
        [PRNT_IVCE_DTL_ID] bigint NULL,
        CONSTRAINT pk_sqlwriter_sample PRIMARY KEY ([IVCE_DTL_UID])
    );
IF OBJECT_ID(N'[dbo].[IVCE_TRKG_MSTR]', N'U') IS NULL
    CREATE TABLE [dbo].[IVCE_TRKG_MSTR] (
        [IVCE_DTL_UID] bigint NOT NULL,
        [CLN_MFR_AI_NM] nvarchar(255) NULL,
        [CLN_MFR_PRT_NUM] nvarchar(100) NULL,
        [UNSPSC_CD] nvarchar(10) NULL,
        [UPC_CD] nvarchar(20) NULL,
        [AKS_PRT_NUM] nvarchar(50) NULL,
        [ITM_AI_LDSC] nvarchar(1000) NULL,
        [IVCE_LNE_STAT] nvarchar(20) NULL,
        [MFR_CNFDC_SCR] decimal(5, 4) NULL,
        [PRT_NUM_CNFDC_SCR] decimal(5, 4) NULL,
        [UNSPSC_CNFDC_SCR] decimal(5, 4) NULL,
        [AI_STG_NM] nvarchar(50) NULL,
        [MFR_STG_NM] nvarchar(50) NULL,
        [PRT_NUM_STG_NM] nvarchar(50) NULL,
        [UNSPSC_STG_NM] nvarchar(50) NULL,
        [RQST_TS] datetime2(6) NULL,
        [PRCS_STRT_TS] datetime2(6) NULL,
        [PRCS_END_TS] datetime2(6) NULL,
        [DUP_IND] nvarchar(1) NULL,
        [PRNT_IVCE_DTL_ID] bigint NULL,
        [DATA_VRFN_IND] nvarchar(1) NULL,
        [WEB_SRCH_URL] nvarchar(2000) NULL,
        PRIMARY KEY ([IVCE_DTL_UID])
    );
GO
-- A row of each line of the examples, which a document needs.
INSERT INTO [dbo].[IVCE_DTL] ([IVCE_DTL_UID])
SELECT j.line
FROM OPENJSON (@lines) WITH (line bigint '$') AS j
WHERE NOT EXISTS (SELECT 1 FROM [dbo].[IVCE_DTL] AS d WHERE d.[IVCE_DTL_UID] = j.line);
