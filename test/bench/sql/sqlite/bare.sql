-- The bare write: the documents and their lines into temp tables, then the three statements. Nothing is checked, and
-- nothing is kept beside the user's tables. A line of its own ends each statement; each is prepared once.
CREATE TEMP TABLE bench_item (
    doc INTEGER PRIMARY KEY,
    CLN_MFR_AI_NM, CLN_MFR_PRT_NUM, UNSPSC_CD, UPC_CD, AKS_PRT_NUM, ITM_AI_LDSC, IVCE_LNE_STAT, DATA_VRFN_IND,
    WEB_SRCH_URL, MFR_CNFDC_SCR, PRT_NUM_CNFDC_SCR, UNSPSC_CNFDC_SCR, AI_STG_NM, MFR_STG_NM, PRT_NUM_STG_NM,
    UNSPSC_STG_NM, RQST_TS, PRCS_STRT_TS, PRCS_END_TS
)
;
CREATE TEMP TABLE bench_line (
    IVCE_DTL_UID INTEGER PRIMARY KEY, doc INTEGER, DUP_IND, PRNT_IVCE_DTL_ID
)
;
DELETE FROM bench_item
;
DELETE FROM bench_line
;
WITH j AS MATERIALIZED (SELECT e.key, e.value FROM json_each(?1) AS e)
INSERT INTO bench_item
SELECT
    j.key,
    j.value ->> 1, j.value ->> 2, j.value ->> 3, j.value ->> 4, j.value ->> 5, j.value ->> 6, j.value ->> 7,
    j.value ->> 8, j.value ->> 9, j.value ->> 10, j.value ->> 11, j.value ->> 12, j.value ->> 13, j.value ->> 14,
    j.value ->> 15, j.value ->> 16, j.value ->> 17, j.value ->> 18, j.value ->> 19
FROM j
;
WITH j AS MATERIALIZED (
    SELECT i.key AS doc, e.value
    FROM json_each(?1) AS i, json_each(i.value, '$[0]') AS e
)
INSERT INTO bench_line
SELECT j.value ->> 0, j.doc, j.value ->> 1, j.value ->> 2
FROM j
;
UPDATE IVCE_DTL AS t
SET
    CLN_MFR_AI_NM = s.CLN_MFR_AI_NM, CLN_MFR_PRT_NUM = s.CLN_MFR_PRT_NUM, UNSPSC_CD = s.UNSPSC_CD, UPC_CD = s.UPC_CD,
    AKS_PRT_NUM = s.AKS_PRT_NUM, ITM_AI_LDSC = s.ITM_AI_LDSC, IVCE_LNE_STAT = s.IVCE_LNE_STAT,
    DATA_VRFN_IND = s.DATA_VRFN_IND, WEB_SRCH_URL = s.WEB_SRCH_URL, MFR_CNFDC_SCR = s.MFR_CNFDC_SCR,
    PRT_NUM_CNFDC_SCR = s.PRT_NUM_CNFDC_SCR, UNSPSC_CNFDC_SCR = s.UNSPSC_CNFDC_SCR, AI_STG_NM = s.AI_STG_NM,
    PRNT_IVCE_DTL_ID = s.PRNT_IVCE_DTL_ID
FROM (SELECT * FROM bench_line AS l CROSS JOIN bench_item AS i ON i.doc = l.doc) AS s
WHERE t.IVCE_DTL_UID = +s.IVCE_DTL_UID
;
UPDATE IVCE_TRKG_MSTR AS t
SET
    CLN_MFR_AI_NM = s.CLN_MFR_AI_NM, CLN_MFR_PRT_NUM = s.CLN_MFR_PRT_NUM, UNSPSC_CD = s.UNSPSC_CD, UPC_CD = s.UPC_CD,
    AKS_PRT_NUM = s.AKS_PRT_NUM, ITM_AI_LDSC = s.ITM_AI_LDSC, IVCE_LNE_STAT = s.IVCE_LNE_STAT,
    MFR_CNFDC_SCR = s.MFR_CNFDC_SCR, PRT_NUM_CNFDC_SCR = s.PRT_NUM_CNFDC_SCR, UNSPSC_CNFDC_SCR = s.UNSPSC_CNFDC_SCR,
    AI_STG_NM = s.AI_STG_NM, MFR_STG_NM = s.MFR_STG_NM, PRT_NUM_STG_NM = s.PRT_NUM_STG_NM,
    UNSPSC_STG_NM = s.UNSPSC_STG_NM, RQST_TS = s.RQST_TS, PRCS_STRT_TS = s.PRCS_STRT_TS, PRCS_END_TS = s.PRCS_END_TS,
    DUP_IND = s.DUP_IND, PRNT_IVCE_DTL_ID = s.PRNT_IVCE_DTL_ID
FROM (SELECT * FROM bench_line AS l CROSS JOIN bench_item AS i ON i.doc = l.doc) AS s
WHERE t.IVCE_DTL_UID = +s.IVCE_DTL_UID
;
INSERT INTO IVCE_TRKG_MSTR (
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
FROM (SELECT * FROM bench_line AS l CROSS JOIN bench_item AS i ON i.doc = l.doc) AS s
WHERE NOT EXISTS (SELECT 1 FROM IVCE_TRKG_MSTR AS t WHERE t.IVCE_DTL_UID = s.IVCE_DTL_UID)
;
